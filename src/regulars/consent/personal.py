"""What consents hold about people: numbers, proofs, and the content of the ledger."""

from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

import msgspec

from regulars.consent.browse.certificate import entry_as_json
from regulars.consent.erase import erase_consent, forget_changes
from regulars.consent.find import list_history, list_subscriptions
from regulars.consent.numbers.gate import find_number_hashes
from regulars.consent.subscription import show_subscription
from regulars.kit.db import Database, Tx
from regulars.work.personal import DataSubject, ErasedPeople, PersonalData, join_pages

NUMBERS_MAX: Final = 200
PAGE_ENTRIES: Final = 1_000
_COMMITTED: Final = "a hash over a commitment whose salt goes with the content"


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    people.subscription_ids = await erase_consent(
        tx, organization_id, people.numbers, secret=people.secret, also=people.number_hashes
    )
    people.number_hashes = await find_number_hashes(tx, organization_id, people.subscription_ids)


async def _erase_stragglers(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    await forget_changes(tx, organization_id, profile_ids=people.profile_ids)


async def export_consents(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    """Each subscription with its whole history, which may be long and leaves page by page."""
    async with database.reading() as tx:
        found = await list_subscriptions(
            tx, person.organization_id, secret=person.secret, profile_id=person.profile_id, limit=NUMBERS_MAX
        )
    for place, subscription in enumerate(found):
        yield (b"," if place else b"") + b'{"subscription":' + msgspec.json.encode(show_subscription(subscription))
        yield b',"history":['
        async for piece in join_pages(_history(database, person, subscription.id)):
            yield piece
        yield b"]}"


async def _history(database: Database, person: DataSubject, subscription_id: UUID) -> AsyncIterator[list[bytes]]:
    after = 0
    while True:
        async with database.reading() as tx:
            page = await list_history(tx, person.organization_id, subscription_id, after=after, limit=PAGE_ENTRIES)
        yield [msgspec.json.encode(entry_as_json(entry)) for entry in page]
        if len(page) < PAGE_ENTRIES:
            break
        after = page[-1].sequence


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
    harmless={
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
    erase_stragglers=_erase_stragglers,
    exports={"consents": export_consents},
)
