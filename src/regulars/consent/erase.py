"""Forget a person without forgetting that they must not be contacted."""

from uuid import UUID

from regulars.consent import chain, queries
from regulars.consent.ledger import Origin, Recorded, Said, open_ledger, subscription_of
from regulars.consent.model import OptOut
from regulars.consent.phone import read_consent_number
from regulars.kit.db import Tx
from regulars.kit.errors import InvalidPhoneNumber


async def erase_consent(
    tx: Tx, organization_id: UUID, *, secret: bytes, profile_id: UUID, phone_number: str | None
) -> list[Recorded]:
    """Turn the profile's own number and every number linked to it into do-not-contact entries dated now.

    What remains of each is a keyed hash, so that an older consent that some file brings back later is superseded. The
    caller has locked the profile against new links (they hold it in existence while they are written).
    """
    linked = await queries.find_linked_hashes(tx, organization_id, [profile_id])
    own = _own_hash(secret, phone_number)
    ledger = await open_ledger(tx, organization_id, new=[] if own is None else [own], known=linked.get(profile_id, []))
    hashes = [own] if own is not None else []
    for number_hash in linked.get(profile_id, []):
        head = ledger.head(number_hash)
        is_still_linked = head is not None and head.state is not None and head.state.profile_id == profile_id
        if is_still_linked and number_hash != own:
            hashes.append(number_hash)
    event = OptOut(phone_number=None, received_at=tx.now, erases=True)
    entries = [ledger.append(number_hash, event, Said(origin=Origin())) for number_hash in hashes]
    # Before the new entries are written: theirs say nothing about the person and stay.
    await queries.delete_payloads(
        tx, organization_id, subscription_ids=[entry.head.id for entry in entries], profile_id=profile_id
    )
    await ledger.write()
    return [
        Recorded(subscription=subscription_of(entry.head, entry.state, {}), outcome=entry.outcome) for entry in entries
    ]


def _own_hash(secret: bytes, phone_number: str | None) -> bytes | None:
    try:
        return None if phone_number is None else chain.hash_number(secret, read_consent_number(phone_number))
    except InvalidPhoneNumber:
        # A number that cannot be read was never texted and no consent can name it.
        return None
