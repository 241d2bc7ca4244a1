"""Consent by text: a reply that `stop_words` read as STOP or START, recorded with the message as its origin."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from regulars.consent.ledger import Origin, Recorded
from regulars.consent.model import Proof
from regulars.consent.opt_in import Consent, Found, opt_in
from regulars.consent.opt_out import Withdrawal, Withdrawn, opt_out
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError

KEYWORD_SOURCE = "SMS_KEYWORD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An inbound message: the sender's number in E.164, the words, and what the messaging room calls it."""

    phone_number: str
    text: str
    message_id: str


async def record_inbound_stop(
    tx: Tx, organization_id: UUID, replies: Sequence[Reply], *, secret: bytes
) -> list[Withdrawn | ApiError]:
    """Withdraw at once: a STOP stands after everything known and is never superseded."""
    stops = [
        Withdrawal(phone_number=it.phone_number, origin=Origin(message_id=it.message_id), message=it.text)
        for it in replies
    ]
    return await opt_out(tx, organization_id, stops, secret=secret)


async def find_for_start(tx: Tx, organization_id: UUID, phone_numbers: Sequence[str]) -> Found:
    """Look up and hold the profiles that a START may concern. Profiles are locked before numbers, by opt-ins and by
    erasures alike, so this comes before whoever hears the reply locks its number."""
    asked = [_start(Reply(phone_number=it, text="", message_id=""), now=tx.now) for it in phone_numbers]
    return await Found.look_up(tx, organization_id, asked)


async def record_inbound_start(
    tx: Tx, organization_id: UUID, replies: Sequence[Reply], *, secret: bytes, found: Found | None = None
) -> list[Recorded | ApiError]:
    """Subscribe again, with the message as the proof; the number stays linked to whom it was."""
    starts = [_start(it, now=tx.now) for it in replies]
    return await opt_in(tx, organization_id, starts, secret=secret, found=found)


def _start(reply: Reply, *, now: datetime) -> Consent:
    return Consent(
        phone_number=reply.phone_number,
        source=KEYWORD_SOURCE,
        consented_at=now,
        proof=Proof(source_text=reply.text),
        origin=Origin(message_id=reply.message_id),
        message=reply.text,
        keeps_profile=True,
    )
