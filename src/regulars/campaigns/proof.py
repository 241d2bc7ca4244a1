"""The proof of a campaign: for each text its words, times, provider's id and state, and the consent it relied on."""

from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import UUID

from regulars.campaigns.model import Outcome
from regulars.campaigns.recipients import list_recipients
from regulars.consent.numbers import find_subscription_ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database
from regulars.kit.ids import PROFILE, SUBSCRIPTION, TEXT
from regulars.messaging.find import find_texts_of_steps
from regulars.messaging.model import OriginKind, TextRow

PAGE_ROWS: Final = 1_000
_START: Final = UUID(int=0)
_NO_TEXT: Final = frozenset({Outcome.HELD_OUT, Outcome.WAITING, Outcome.EXPIRED, Outcome.ERASED})
_WITH_TEXT: Final = tuple(outcome for outcome in Outcome if outcome not in _NO_TEXT)


async def read_proof(database: Database, organization_id: UUID, campaign_id: UUID) -> AsyncIterator[dict[str, Any]]:
    """One entry for each text, by outcome, page by page. A text whose outcome changes meanwhile may be left out or
    occur twice. The certificate of the subscription proves the consent at the time of the text."""
    for outcome in _WITH_TEXT:
        after = _START
        while True:
            async with database.reading() as tx:
                page = await list_recipients(
                    tx, organization_id, campaign_id, outcome=outcome, after=after, limit=PAGE_ROWS
                )
                steps = [(campaign_id, str(it.profile_id)) for it in page]
                texts = await find_texts_of_steps(tx, organization_id, OriginKind.CAMPAIGN, steps)
                hashes = {text.number_hash for text in texts.values() if text.number_hash is not None}
                subscriptions = await find_subscription_ids(tx, organization_id, hashes)
            for it in page:
                text = texts.get((campaign_id, str(it.profile_id)))
                if text is not None:
                    yield _entry(it.profile_id, it.arm, text, subscriptions.get(text.number_hash or b""))
            if len(page) < PAGE_ROWS:
                break
            after = page[-1].profile_id


def _entry(profile_id: UUID, arm: int, text: TextRow, subscription_id: UUID | None) -> dict[str, Any]:
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
        **{name: None if moment is None else format_timestamp(moment) for name, moment in times.items()},
    }
