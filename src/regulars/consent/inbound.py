"""Record the opt-out or opt-in that a customer sent as a reply, STOP or START; the reply is stored as its proof."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from regulars.consent.ledger import EventOrigin, OptInResult
from regulars.consent.model import Proof
from regulars.consent.opt_in import Consent, OptInReferences, opt_in
from regulars.consent.opt_out import OptOutResult, Withdrawal, opt_out
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError

# The source of consents by START.
KEYWORD_SOURCE = "SMS_KEYWORD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A text message that a customer sent: the customer's number in E.164, the text, and its id in `inbox`."""

    phone_number: str
    text: str
    message_id: str


async def record_inbound_stop(
    tx: Tx, organization_id: UUID, replies: Sequence[Reply], *, secret: bytes
) -> list[OptOutResult | ApiError]:
    """Withdraw the consent of each number, after all events recorded so far: a STOP is never superseded."""
    stops = [
        Withdrawal(phone_number=reply.phone_number, origin=EventOrigin(message_id=reply.message_id), message=reply.text)
        for reply in replies
    ]
    return await opt_out(tx, organization_id, stops, secret=secret)


async def lock_profiles_for_start(tx: Tx, organization_id: UUID, phone_numbers: Sequence[str]) -> OptInReferences:
    """Find and lock the profiles to which a START may link the numbers. Opt-ins and erasures lock profiles before
    numbers, so the handler of a reply calls this before it locks the number."""
    starts = [_make_consent(Reply(phone_number=number, text="", message_id=""), now=tx.now) for number in phone_numbers]
    return await OptInReferences.load(tx, organization_id, starts)


async def record_inbound_start(
    tx: Tx, organization_id: UUID, replies: Sequence[Reply], *, secret: bytes, references: OptInReferences | None = None
) -> list[OptInResult | ApiError]:
    """Subscribe each number again, with the message as the proof; the number stays linked to its profile. `references`
    come from `lock_profiles_for_start`."""
    starts = [_make_consent(reply, now=tx.now) for reply in replies]
    return await opt_in(tx, organization_id, starts, secret=secret, references=references)


def _make_consent(reply: Reply, *, now: datetime) -> Consent:
    return Consent(
        phone_number=reply.phone_number,
        source=KEYWORD_SOURCE,
        consented_at=now,
        proof=Proof(source_text=reply.text),
        origin=EventOrigin(message_id=reply.message_id),
        message=reply.text,
        keeps_profile=True,
    )
