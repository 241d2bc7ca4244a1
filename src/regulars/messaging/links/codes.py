"""Give the links of texts their codes, in the transaction that queues the texts.

A shared link has one code for each origin, step and destination. A personal link has one for each text. Codes are
random, so that no one can guess a customer's; a code that is taken is drawn again.
"""

import secrets
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import ALPHABET
from regulars.messaging.links import queries
from regulars.messaging.links.marks import (
    CODE_CHARACTERS,
    OPT_OUT,
    PREFIX_CHARACTERS,
    list_marked,
    replace_marked,
    short_url,
    show_links,
)
from regulars.messaging.links.model import LinkOrigin, LinkRow
from regulars.messaging.links.queries import SharedLink


class LinkedText(NamedTuple):
    """The words of a text with marked links, and where their clicks are counted."""

    id: UUID
    profile_id: UUID | None
    words: str
    origin: LinkOrigin
    # Whether the recipient gets codes of their own.
    is_personal: bool


async def shorten_links(tx: Tx, organization_id: UUID, texts: Sequence[LinkedText]) -> dict[UUID, str]:
    """The words of each text with short links; as they were written where the process has no host for links."""
    if short_url("") is None:
        return {text.id: show_links(text.words) for text in texts}
    prefix = await _load_prefix(tx, organization_id)
    shared = await _share_codes(tx, organization_id, texts)
    own = await _draw_own_codes(tx, organization_id, texts)

    def shorten(text: LinkedText, url: str) -> str:
        code = own[text.id, url] if _is_own(text, url) else shared[_shared_link(text, url)]
        return short_url(prefix + code) or url

    return {text.id: replace_marked(text.words, partial(shorten, text)) for text in texts}


async def discard_links(tx: Tx, organization_id: UUID, text_ids: Sequence[UUID]) -> None:
    """Delete the personal links of texts that were not queued after all."""
    if text_ids:
        await queries.delete_links_of_texts(tx, organization_id, text_ids)


def _is_own(text: LinkedText, url: str) -> bool:
    """A link to opt out names the number, so it is personal whatever was chosen."""
    return text.is_personal or url == OPT_OUT


def _shared_link(text: LinkedText, url: str) -> SharedLink:
    return SharedLink(text.origin.id, text.origin.step, url, text.origin.kind)


async def _load_prefix(tx: Tx, organization_id: UUID) -> str:
    """The organization's, which is drawn with its first link."""
    while (prefix := await queries.find_prefix(tx, organization_id)) is None:
        await queries.insert_prefix_if_new(tx, organization_id, _draw(PREFIX_CHARACTERS))
    return prefix


async def _share_codes(tx: Tx, organization_id: UUID, texts: Sequence[LinkedText]) -> dict[SharedLink, str]:
    wanted = {_shared_link(text, url) for text in texts for url in list_marked(text.words) if not _is_own(text, url)}
    found: dict[SharedLink, str] = {}
    while missing := sorted(wanted - found.keys()):
        found |= await queries.find_shared(tx, organization_id, missing)
        # In order, so that two transactions that share the same links for the first time never deadlock.
        new = [
            LinkRow(_draw(CODE_CHARACTERS), it.url, it.origin_kind, it.origin_id, it.step)
            for it in missing
            if it not in found
        ]
        if new:
            await queries.insert_links_if_new(tx, organization_id, new)
    return found


async def _draw_own_codes(tx: Tx, organization_id: UUID, texts: Sequence[LinkedText]) -> dict[tuple[UUID, str], str]:
    missing = {(text.id, url): text for text in texts for url in list_marked(text.words) if _is_own(text, url)}
    found: dict[tuple[UUID, str], str] = {}
    while missing:
        rows = {
            (text_id, url): LinkRow(
                _draw(CODE_CHARACTERS),
                url,
                *text.origin,
                personal_since=tx.now,
                text_id=text_id,
                profile_id=text.profile_id,
            )
            for (text_id, url), text in missing.items()
        }
        inserted = await queries.insert_links_if_new(tx, organization_id, list(rows.values()))
        found |= {key: row.code for key, row in rows.items() if row.code in inserted}
        missing = {key: text for key, text in missing.items() if key not in found}
    return found


def _draw(characters: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(characters))
