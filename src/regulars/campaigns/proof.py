"""Writes the evidence file of a campaign: each text with its times, state and provider id, and the consent for it."""

from collections.abc import AsyncGenerator, Iterable
from typing import Any, Final
from uuid import UUID

import msgspec

from regulars.campaigns.model import GETS_NO_TEXT, RecipientOutcome
from regulars.campaigns.recipients import RecipientRow, list_recipients
from regulars.consent.history import find_entries_in_effect
from regulars.consent.model import LedgerEntry
from regulars.consent.numbers import find_subscription_ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database, Tx
from regulars.kit.ids import PROFILE, SUBSCRIPTION, TEXT
from regulars.links.origin_kind import OriginKind
from regulars.texts.find import find_texts_of_steps
from regulars.texts.model import TextRow

PAGE_ROWS: Final = 200
_encoder: Final = msgspec.json.Encoder()
_WITHOUT_TEXT: Final = frozenset(
    {*GETS_NO_TEXT, RecipientOutcome.WAITING, RecipientOutcome.EXPIRED, RecipientOutcome.ERASED}
)
_WITH_TEXT: Final = tuple(outcome for outcome in RecipientOutcome if outcome not in _WITHOUT_TEXT)


async def write_proof(database: Database, organization_id: UUID, campaign_id: UUID) -> AsyncGenerator[bytes]:
    """The evidence file in pages: one line of JSON for each text, sorted by outcome. A text whose outcome changes
    meanwhile may be missing or occur twice."""
    for outcome in _WITH_TEXT:
        after: RecipientRow | None = None
        while True:
            async with database.reading() as tx:
                page = await list_recipients(
                    tx, organization_id, campaign_id, outcome=outcome, after=after, limit=PAGE_ROWS
                )
                # The step of a campaign's text is the id of its recipient.
                steps = [(campaign_id, str(it.profile_id)) for it in page]
                texts = await find_texts_of_steps(tx, organization_id, OriginKind.CAMPAIGN, steps)
                consents = await _find_consents(tx, organization_id, texts.values())
            entries = [
                _make_entry(it.profile_id, it.arm, text, consents.get(text.id))
                for it in page
                if (text := texts.get((campaign_id, str(it.profile_id)))) is not None
            ]
            if entries:
                yield _encoder.encode_lines(entries)
            if len(page) < PAGE_ROWS:
                break
            after = page[-1]


async def _find_consents(
    tx: Tx, organization_id: UUID, texts: Iterable[TextRow]
) -> dict[UUID, tuple[UUID, LedgerEntry | None]]:
    """For each text the subscription of its number, and the entry of the consent ledger that was in effect when a
    worker claimed the text for sending; None if no worker claimed it."""
    with_number = [(text, text.number_hash) for text in texts if text.number_hash is not None]
    subscriptions = await find_subscription_ids(tx, organization_id, {number_hash for _, number_hash in with_number})
    subscribed = [(text, subscriptions[it]) for text, it in with_number if it in subscriptions]
    claimed = [(text.id, identifier, text.claimed_at) for text, identifier in subscribed if text.claimed_at is not None]
    entries = await find_entries_in_effect(tx, organization_id, [(it, claimed_at) for _, it, claimed_at in claimed])
    entry_of_text = {text_id: entry for (text_id, _, _), entry in zip(claimed, entries, strict=True)}
    return {text.id: (identifier, entry_of_text.get(text.id)) for text, identifier in subscribed}


def _make_entry(
    profile_id: UUID, arm: int, text: TextRow, consent: tuple[UUID, LedgerEntry | None] | None
) -> dict[str, Any]:
    """A line of the evidence file; `arm` is the number of the variant."""
    subscription_id, entry = consent or (None, None)
    times = {"requested_at": text.created_at, "claimed_at": text.claimed_at, "ended_at": text.ended_at}
    return {
        "profile_id": PROFILE.encode(profile_id),
        "variant": arm,
        "text_id": TEXT.encode(text.id),
        "phone_number": text.phone_number,
        "text": text.body,
        "parts": text.parts,
        "state": text.state,
        "reason": text.reason,
        "provider": text.provider,
        "provider_id": text.provider_id,
        "subscription_id": None if subscription_id is None else SUBSCRIPTION.encode(subscription_id),
        "consent": None if entry is None else _describe_consent(entry),
        **{name: None if time is None else format_timestamp(time) for name, time in times.items()},
    }


def _describe_consent(entry: LedgerEntry) -> dict[str, Any]:
    """A ledger entry; its sequence number and hash can be compared with the certificate of the consent."""
    payload = {} if entry.payload is None else msgspec.json.decode(entry.payload)
    return {
        "sequence": entry.sequence,
        "kind": entry.kind,
        "effective_at": format_timestamp(entry.effective_at),
        "received_at": format_timestamp(entry.received_at),
        "source": payload.get("consent_source"),
        "hash": entry.hash.hex(),
    }
