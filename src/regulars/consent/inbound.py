"""Consent by text: a reply that `stop_words` read as STOP or START, recorded with the message as its origin."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from regulars.consent import chain
from regulars.consent.ledger import (
    Entry,
    Origin,
    Recorded,
    Said,
    find_missing_external_ids,
    open_ledger,
)
from regulars.consent.model import OptIn, OptOut, Proof, opt_in_automation
from regulars.consent.subscription import subscription_of
from regulars.kit.db import Tx
from regulars.profiles.find import find_profiles_by_phone, lock_profiles

KEYWORD_SOURCE = "SMS_KEYWORD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An inbound message: the sender's number in E.164, the words, and what the messaging room calls it."""

    phone_number: str
    text: str
    message_id: str


async def record_inbound_stop(
    tx: Tx, organization_id: UUID, replies: Sequence[Reply], *, secret: bytes
) -> list[Recorded]:
    """Withdraw at once: a STOP stands after everything known and is never superseded."""
    hashes = [chain.hash_number(secret, reply.phone_number) for reply in replies]
    ledger = await open_ledger(tx, organization_id, new=hashes)
    entries = [
        ledger.append(number_hash, OptOut(phone_number=reply.phone_number, received_at=tx.now), _said(reply))
        for number_hash, reply in zip(hashes, replies, strict=True)
    ]
    await ledger.write()
    external_ids = await find_missing_external_ids(tx, organization_id, entries, {})
    return [
        Recorded(subscription=subscription_of(entry.head, entry.state, external_ids), outcome=entry.outcome)
        for entry in entries
    ]


async def record_inbound_start(
    tx: Tx, organization_id: UUID, replies: Sequence[Reply], *, secret: bytes
) -> list[Recorded]:
    """Subscribe again, with the message as the proof; the number stays linked to whom it was."""
    by_number = await find_profiles_by_phone(tx, organization_id, {reply.phone_number for reply in replies})
    only_one = {number: found[0] for number, found in by_number.items() if len(found) == 1}
    alive = await lock_profiles(tx, organization_id, {profile.id for profile in only_one.values()})
    hashes = [chain.hash_number(secret, reply.phone_number) for reply in replies]
    ledger = await open_ledger(tx, organization_id, new=hashes)
    entries: list[Entry] = []
    for number_hash, reply in zip(hashes, replies, strict=True):
        found = only_one.get(reply.phone_number)
        event = OptIn(
            phone_number=reply.phone_number,
            source=KEYWORD_SOURCE,
            claimed_at=tx.now,
            received_at=tx.now,
            proof=Proof(source_text=reply.text),
            found_profile_id=found.id if found is not None and found.id in alive else None,
            keeps_profile=True,
        )
        entries.append(ledger.append(number_hash, event, _said(reply)))
    await ledger.write()
    external_ids = await find_missing_external_ids(tx, organization_id, entries, {})
    return [
        Recorded(
            subscription=subscription_of(entry.head, entry.state, external_ids),
            outcome=entry.outcome,
            automation=opt_in_automation(entry.outcome, consented_at=tx.now, now=tx.now),
        )
        for entry in entries
    ]


def _said(reply: Reply) -> Said:
    return Said(origin=Origin(message_id=reply.message_id), message=reply.text)
