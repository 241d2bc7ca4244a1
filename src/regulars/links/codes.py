"""Replace the links of texts by short links with random codes, in the transaction that queues the texts.

A shared link has one code for each destination in a variant of a campaign or a step of a journey. A personal link has
its own code in each text. Codes are random, so that the code of a customer cannot be guessed; if a code is in use,
another code is generated.
"""

import secrets
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import ALPHABET
from regulars.links import link_rows as queries
from regulars.links.link_rows import SharedLink
from regulars.links.marks import (
    CODE_CHARACTERS,
    OPT_OUT,
    PREFIX_CHARACTERS,
    list_marked,
    preview_links,
    replace_marked,
    short_url,
)
from regulars.links.model import LinkOrigin, LinkRow


class LinkedText(NamedTuple):
    """A text with marks around its links' destinations (`marks.py`), and where clicks on its links are counted."""

    id: UUID
    profile_id: UUID | None
    marked_text: str
    origin: LinkOrigin
    # Whether the recipient gets personal codes.
    is_personal: bool


async def shorten_links(
    tx: Tx, organization_id: UUID, texts: Sequence[LinkedText], *, is_demo: bool
) -> dict[UUID, str]:
    """Each text with short links; without a host for short links, for which `short_url` returns None, the addresses are
    not shortened."""
    if short_url("", is_demo=is_demo) is None:
        return {text.id: preview_links(text.marked_text, is_demo=is_demo) for text in texts}
    prefix = await _load_prefix(tx, organization_id)
    shared = await _load_shared_codes(tx, organization_id, texts)
    personal = await _create_personal_codes(tx, organization_id, texts)

    def shorten(text: LinkedText, url: str) -> str:
        code = personal[text.id, url] if _is_personal(text, url) else shared[_shared_link(text, url)]
        return short_url(prefix + code, is_demo=is_demo) or url

    return {text.id: replace_marked(text.marked_text, partial(shorten, text)) for text in texts}


async def discard_links(tx: Tx, organization_id: UUID, text_ids: Sequence[UUID]) -> None:
    """Delete the personal links of texts that were not queued after all."""
    if text_ids:
        await tx.execute(
            "DELETE FROM links WHERE organization_id = %s AND text_id = ANY (%s::uuid[])",
            (organization_id, list(text_ids)),
        )


def _is_personal(text: LinkedText, url: str) -> bool:
    """Whether the link is personal. An opt-out link always is, because the click must identify the phone number."""
    return text.is_personal or url == OPT_OUT


def _shared_link(text: LinkedText, url: str) -> SharedLink:
    return SharedLink(text.origin.id, text.origin.step, url, text.origin.kind)


async def _load_prefix(tx: Tx, organization_id: UUID) -> str:
    """The prefix of the organization's codes, which is generated when its first link is created."""
    while (prefix := await queries.find_prefix(tx, organization_id)) is None:
        # Nothing is inserted if the prefix is in use, or if the organization has a prefix meanwhile.
        await tx.execute(
            "INSERT INTO link_prefixes (prefix, organization_id) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (_random_code(PREFIX_CHARACTERS), organization_id),
        )
    return prefix


async def _load_shared_codes(tx: Tx, organization_id: UUID, texts: Sequence[LinkedText]) -> dict[SharedLink, str]:
    """The codes of the shared links in these texts; new links are created."""
    links = {
        _shared_link(text, url)
        for text in texts
        for url in list_marked(text.marked_text)
        if not _is_personal(text, url)
    }
    codes: dict[SharedLink, str] = {}
    while missing := sorted(links - codes.keys()):
        codes |= await queries.find_shared(tx, organization_id, missing)
        # Sorted, so that two transactions that create the same shared links never deadlock.
        new_links = [
            LinkRow(_random_code(CODE_CHARACTERS), link.url, link.origin_kind, link.origin_id, link.step)
            for link in missing
            if link not in codes
        ]
        if new_links:
            await queries.insert_links_if_new(tx, organization_id, new_links)
    return codes


async def _create_personal_codes(
    tx: Tx, organization_id: UUID, texts: Sequence[LinkedText]
) -> dict[tuple[UUID, str], str]:
    missing = {
        (text.id, url): text for text in texts for url in list_marked(text.marked_text) if _is_personal(text, url)
    }
    codes: dict[tuple[UUID, str], str] = {}
    while missing:
        rows = {
            (text_id, url): LinkRow(
                _random_code(CODE_CHARACTERS),
                url,
                *text.origin,
                personal_since=tx.now,
                text_id=text_id,
                profile_id=text.profile_id,
            )
            for (text_id, url), text in missing.items()
        }
        inserted = await queries.insert_links_if_new(tx, organization_id, list(rows.values()))
        codes |= {key: row.code for key, row in rows.items() if row.code in inserted}
        missing = {key: text for key, text in missing.items() if key not in codes}
    return codes


def _random_code(characters: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(characters))
