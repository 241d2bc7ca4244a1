"""What sales hold about people: whose they are, free objects, and what was tried under a number that was taken."""

from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.kit.ids import PROFILE
from regulars.sales.anonymise import anonymise_sales
from regulars.sales.encode import encode_sale
from regulars.sales.listing import list_sales
from regulars.work.personal import DataSubject, ErasedPeople, PersonalData, join_pages

PAGE_SALES: Final = "200"


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    numbers = [number for number in people.numbers.values() if number]
    await anonymise_sales(
        tx, organization_id, people.profile_ids, references=[*people.references, *numbers], names=people.names
    )


async def _sales(database: Database, person: DataSubject) -> AsyncIterator[list[bytes]]:
    query = {"profile_id": PROFILE.encode(person.profile_id), "limit": PAGE_SALES}
    while True:
        async with database.reading() as tx:
            page, _, cursor = await list_sales(tx, person.organization_id, query, secret=person.secret)
        yield [encode_sale(sale) for sale in page]
        if cursor is None:
            break
        query = {**query, "cursor": cursor}


def export_sales(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    return join_pages(_sales(database, person))


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "sales_events.profile_id",
        "sales_events.payments",
        "sales_events.loyalty",
        "sales_events.metadata",
        "ticket_collisions.attempt",
        "ticket_collision_totals.note",
    ),
    harmless={
        "sales_events.external_id": "the number of a ticket",
        "sales_events.type": "purchase or return",
        "sales_events.currency": "a currency",
        "sales_events.source": "the name of a system",
        "sales_events.line_items": "product data, which stays when a person is erased",
        "ticket_collisions.content_hash": "a hash of a whole ticket, deleted with it",
        "ticket_collision_totals.review": "one of the decisions about a collision",
        "ticket_collision_totals.reviewed_by": "about the retailer's staff, who are no customers",
        "hourly_totals": "sums of all customers",
        "hourly_totals_fills": "how far sums were made",
    },
    erase=_erase,
    exports={"sales_events": export_sales},
)
