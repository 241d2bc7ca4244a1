"""Erase and export the personal data of consents: phone numbers, proofs and the content of ledger entries."""

from collections.abc import AsyncIterator, Collection, Mapping
from operator import attrgetter
from typing import Final
from uuid import UUID

import msgspec

from regulars.consent import chain, queries
from regulars.consent.certificate import entry_as_json
from regulars.consent.facts import SubscriptionsChanged
from regulars.consent.find import list_subscriptions
from regulars.consent.history import list_entries
from regulars.consent.ledger import EventDetails, EventOrigin, reserve_ledger
from regulars.consent.model import LedgerEntry, OptOut
from regulars.consent.numbers import find_number_hashes
from regulars.consent.phone import read_if_number
from regulars.consent.subscription import subscription_out
from regulars.kit.db import Database, Tx
from regulars.work.outbox import rewrite_waiting_facts
from regulars.work.personal import DataSubject, ErasedPeople, PersonalData, export_rows

EXPORTED_NUMBERS_MAX: Final = 200
PAGE_ENTRIES: Final = 1_000
# Why the hashes of the ledger are not personal data.
_COMMITTED: Final = "a hash over a commitment whose salt is deleted with the content"
_DELETE_PAYLOADS: Final = """
DELETE FROM consent_payloads
WHERE organization_id = %s AND (subscription_id = ANY (%s::uuid[]) OR profile_id = ANY (%s::uuid[]))
"""


async def erase_consent(
    tx: Tx,
    organization_id: UUID,
    numbers: Mapping[UUID, str | None],
    *,
    secret: bytes,
    replayed_hashes: Collection[bytes] = (),
) -> list[UUID]:
    """Withdraw and erase the numbers of profiles: each profile's own number (`numbers`, by profile id) and every number
    linked to one of the profiles. Returns the ids of the erased subscriptions.

    A profile's own number that is linked to another profile is not withdrawn: the erased profile has it only as a
    field, which is deleted with the profile. `replayed_hashes` has the number hashes of an erasure that is repeated
    after a restore; these are withdrawn in any case, because they were the person's at the time of the erasure.

    A keyed hash of each number remains, so that a consent from before the erasure that is imported later does not
    subscribe the number. The caller has locked the profiles against new links.
    """
    linked = await queries.find_linked_hashes(tx, organization_id, numbers)
    own_hashes = [
        chain.hash_number(secret, number) for text in numbers.values() if text and (number := read_if_number(text))
    ]
    linked_hashes = {number_hash for hashes in linked.values() for number_hash in hashes}
    ledger = await reserve_ledger(tx, organization_id, new=[*own_hashes, *replayed_hashes], known=linked_hashes)
    own_to_erase = [key for key in own_hashes if ledger.linked_profile(key) in (None, *numbers)]
    still_linked = [key for key in sorted(linked_hashes) if ledger.linked_profile(key) in numbers]
    event = OptOut(phone_number=None, received_at=tx.now, erases=True)
    numbers_to_erase = dict.fromkeys([*own_to_erase, *still_linked, *replayed_hashes])
    for number_hash in numbers_to_erase:
        ledger.append(number_hash, event, EventDetails(origin=EventOrigin()))
    erased = [ledger.subscription_id(number_hash) for number_hash in numbers_to_erase]
    # Deleted before `write`, which adds the payloads of this erasure: these have no personal data and stay.
    await tx.execute(_DELETE_PAYLOADS, (organization_id, erased, list(numbers)))
    await ledger.write()
    await erase_waiting_changes(tx, organization_id, profile_ids=numbers, subscription_ids=erased)
    return erased


async def erase_waiting_changes(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], subscription_ids: Collection[UUID] = ()
) -> None:
    """Remove erased people from recorded changes that no listener has handled yet; changes by the erasure itself
    stay."""
    erased_ids = {*profile_ids, *subscription_ids}

    def without_erased(fact: SubscriptionsChanged) -> SubscriptionsChanged | None:
        remaining = tuple(
            change for change in fact.changes if change.by_erasure or not erased_ids & {change.id, change.profile_id}
        )
        return msgspec.structs.replace(fact, changes=remaining) if remaining else None

    await rewrite_waiting_facts(tx, organization_id, SubscriptionsChanged, erased_ids, without_erased)


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    people.subscription_ids = await erase_consent(
        tx, organization_id, people.numbers, secret=people.secret, replayed_hashes=people.number_hashes
    )
    people.number_hashes = await find_number_hashes(tx, organization_id, people.subscription_ids)


async def _erase_late_rows(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    await erase_waiting_changes(tx, organization_id, profile_ids=people.profile_ids)


async def export_consents(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    """Write each subscription of the person with its whole history, as JSON, page by page."""
    async with database.reading() as tx:
        subscriptions = await list_subscriptions(
            tx, person.organization_id, secret=person.secret, profile_id=person.profile_id, limit=EXPORTED_NUMBERS_MAX
        )
    for index, subscription in enumerate(subscriptions):
        yield (b"," if index else b"") + b'{"subscription":' + msgspec.json.encode(subscription_out(subscription))
        yield b',"history":['
        async for chunk in _export_history(database, person, subscription.id):
            yield chunk
        yield b"]}"


def _export_history(database: Database, person: DataSubject, subscription_id: UUID) -> AsyncIterator[bytes]:
    async def list_rows(tx: Tx, after: int, limit: int) -> list[LedgerEntry]:
        return await list_entries(tx, person.organization_id, subscription_id, after=after, limit=limit)

    return export_rows(
        database, list_rows, entry_as_json, position=attrgetter("sequence"), start=0, page_rows=PAGE_ENTRIES
    )


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "subscriptions.phone_number",
        "subscriptions.profile_id",
        "subscriptions.terms_url",
        "subscriptions.terms_version",
        "subscriptions.source_text",
        "consent_payloads.profile_id",
        "consent_payloads.payload",
    ),
    not_personal={
        "subscriptions.number_hash": "a keyed hash, which stays so that the number is not contacted again",
        "subscriptions.consent_source": "one of the listed sources of consent",
        "subscriptions.last_hash": _COMMITTED,
        "consent_payloads.salt": "random, and deleted with the content",
        "consent_ledger.outcome": "one of the outcomes of a consent",
        "consent_ledger.commitment": _COMMITTED,
        "consent_ledger.previous_hash": _COMMITTED,
        "consent_ledger.hash": _COMMITTED,
        "consent_figures": "counts",
    },
    erase=_erase,
    erase_late_rows=_erase_late_rows,
    exports={"consents": export_consents},
)
