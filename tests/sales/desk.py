"""A till for tests of the sales room: decodes tickets as requests are decoded and looks at what they left."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from tests.support import samples

from regulars.kit.db import Database, Tx
from regulars.kit.errors import ApiError
from regulars.kit.ids import new_uuid
from regulars.sales.decode import decode_sale
from regulars.sales.model import Sale, SaleOutcome
from regulars.sales.record import record_sales
from regulars.stores.model import StoreUpsert
from regulars.stores.upsert import upsert_stores

TOLERANCE = timedelta(seconds=30)
STORE = "PARIS-01"
# One moment for all tickets, so that two with one id are the same unless the test says otherwise.
AN_HOUR_AGO = samples.ago(hours=1)


def ticket(external_id: str, **changes: Any) -> Sale:
    body = {**samples.sale(STORE), "external_id": external_id, "occurred_at": AN_HOUR_AGO, **changes}
    return decode_sale(samples.json_bytes(body))


class Desk:
    def __init__(self, database: Database, organization_id: UUID) -> None:
        self.database = database
        self.organization_id = organization_id

    async def open_store(self, *codes: str) -> None:
        async with self.database.transaction() as tx:
            await upsert_stores(tx, self.organization_id, [StoreUpsert(external_id=code) for code in codes])

    async def record(self, *sales: Sale) -> list[SaleOutcome | ApiError]:
        async with self.database.transaction() as tx:
            return await self.record_in(tx, *sales)

    async def record_in(self, tx: Tx, *sales: Sale) -> list[SaleOutcome | ApiError]:
        return await record_sales(tx, self.organization_id, sales, tolerance=TOLERANCE)

    async def rows(self, query: str) -> list[Any]:
        """Rows of this organization; the query has one place for it."""
        async with self.database.reading() as tx:
            return await tx.fetch(query, (self.organization_id,))  # type: ignore[arg-type]  # each caller passes a literal

    async def tickets(self) -> list[str]:
        rows = await self.rows("SELECT external_id FROM sales_events WHERE organization_id = %s ORDER BY 1")
        return [row[0] for row in rows]

    async def customers(self) -> list[str]:
        rows = await self.rows("SELECT external_id FROM profiles WHERE organization_id = %s ORDER BY 1")
        return [row[0] for row in rows]

    async def published_sales(self) -> list[list[UUID]]:
        """The sales of each fact in the outbox."""
        rows = await self.rows(
            "SELECT payload::text FROM outbox WHERE organization_id = %s AND topic = 'sales.recorded' ORDER BY id"
        )
        return [fact["sales"] for row in rows for fact in msgspec.json.decode(row[0])]

    async def published_profiles(self) -> list[Any]:
        """The changes of profiles in the outbox, in their order."""
        rows = await self.rows(
            "SELECT payload::text FROM outbox WHERE organization_id = %s AND topic = 'profiles.changed' ORDER BY id"
        )
        return [change for row in rows for fact in msgspec.json.decode(row[0]) for change in fact["changes"]]

    async def elsewhere(self) -> "psycopg.AsyncConnection[Any]":
        """A connection of another process."""
        return await psycopg.AsyncConnection.connect(self.database.url)


async def write_ticket(other: "psycopg.AsyncConnection[Any]", organization_id: UUID, external_id: str) -> None:
    """Writes a ticket beside the one that is there, as another process does."""
    await other.execute(
        "INSERT INTO sales_events SELECT organization_id, gen_random_uuid(), store_id, profile_id, occurred_at,"
        " created_at, 1, 0, NULL, %s, type, currency, source, payments, loyalty, metadata, line_items"
        " FROM sales_events WHERE organization_id = %s LIMIT 1",
        (external_id, organization_id),
    )


async def write_profile(other: "psycopg.AsyncConnection[Any]", organization_id: UUID, external_id: str) -> UUID:
    """The same for a customer."""
    identifier = new_uuid()
    await other.execute(
        "INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)"
        " VALUES (%s, %s, %s, now(), now())",
        (organization_id, identifier, external_id),
    )
    return identifier


def summarize(outcome: SaleOutcome | ApiError) -> tuple[Any, ...]:
    """An outcome in short: its code, or whether it is new and whether it differs from what is stored."""
    if isinstance(outcome, ApiError):
        return (outcome.code,)
    return ("new" if outcome.is_new else "known", outcome.differs)


async def database_time(database: Database) -> datetime:
    async with database.transaction() as tx:
        return tx.now
