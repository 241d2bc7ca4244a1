"""Forget people without forgetting that they must not be contacted."""

from collections.abc import Collection, Mapping
from uuid import UUID

import msgspec

from regulars.consent import chain, queries
from regulars.consent.facts import SubscriptionsChanged
from regulars.consent.ledger import Origin, Said, reserve_ledger
from regulars.consent.model import OptOut
from regulars.consent.phone import read_if_number
from regulars.kit.db import Tx
from regulars.work.outbox import rewrite_waiting_facts


async def erase_consent(
    tx: Tx,
    organization_id: UUID,
    numbers: Mapping[UUID, str | None],
    *,
    secret: bytes,
    also: Collection[bytes] = (),
) -> list[UUID]:
    """Turn the profiles' own `numbers` and every number linked to them into do-not-contact entries dated now.

    A number that is another profile's subscription is left alone: it is on the erased profile as a mere field, and goes
    with it. A number that no profile is linked to is withdrawn. Numbers by whose hash (`also`) an erasure is
    replayed are withdrawn in any case: when it happened, they were the person's.

    What remains of each is a keyed hash, so that an older consent that some file brings back later is superseded. The
    caller has locked the profiles against new links (they hold them in existence while they are written). The heads
    of all of them are locked together, in their order. Answers the ids of the subscriptions that were forgotten.
    """
    linked = await queries.find_linked_hashes(tx, organization_id, numbers)
    own = [chain.hash_number(secret, number) for text in numbers.values() if text and (number := read_if_number(text))]
    known = {number_hash for hashes in linked.values() for number_hash in hashes}
    ledger = await reserve_ledger(tx, organization_id, new=[*own, *also], known=known)
    theirs = [number_hash for number_hash in own if ledger.linked_to(number_hash) in (None, *numbers)]
    still_linked = [number_hash for number_hash in sorted(known) if ledger.linked_to(number_hash) in numbers]
    event = OptOut(phone_number=None, received_at=tx.now, erases=True)
    numbers_to_forget = dict.fromkeys([*theirs, *still_linked, *also])
    for number_hash in numbers_to_forget:
        ledger.append(number_hash, event, Said(origin=Origin()))
    forgotten = [ledger.subscription_id(number_hash) for number_hash in numbers_to_forget]
    # Before the new entries are written: theirs say nothing about the person and stay.
    await queries.delete_payloads(tx, organization_id, subscription_ids=forgotten, profile_ids=numbers)
    await ledger.write()
    await forget_changes(tx, organization_id, profile_ids=numbers, subscription_ids=forgotten)
    return forgotten


async def forget_changes(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], subscription_ids: Collection[UUID] = ()
) -> None:
    """Take the people out of changes that nobody has heard yet; what their erasure did stays to be told."""
    gone = {*profile_ids, *subscription_ids}

    def without(fact: SubscriptionsChanged) -> SubscriptionsChanged | None:
        kept = tuple(one for one in fact.changes if one.by_erasure or not gone & {one.id, one.profile_id})
        return msgspec.structs.replace(fact, changes=kept) if kept else None

    await rewrite_waiting_facts(tx, organization_id, SubscriptionsChanged, gone, without)
