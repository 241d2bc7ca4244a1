"""The two tables of totals, by hour and by day, and how far each has been counted."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from psycopg.sql import SQL, Composed, Identifier

from regulars.kit.db import Tx

NO_SALE: Final = UUID(int=0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# What follows the 48 bits of milliseconds in the largest UUIDv7 of its millisecond.
_LAST_OF_MILLISECOND: Final = 0x7FFF_BFFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class Totals:
    """A table of totals, and the table of its fills."""

    table: LiteralString
    fills: LiteralString
    # The queue of its fills.
    queue: str

    def statement(self, text: LiteralString) -> Composed:
        return SQL(text).format(totals=Identifier(self.table), fills=Identifier(self.fills))


HOURLY: Final = Totals("hourly_totals", "hourly_totals_fills", "sales.hourly_totals_fill")
DAILY: Final = Totals("daily_totals", "daily_totals_fills", "sales.daily_totals_fill")


class Fill(NamedTuple):
    """Sales up to the fence are counted by the fill, and those after it by the listener."""

    fence: UUID
    walked_to: UUID
    # None once all sales up to the fence are counted.
    due_at: datetime | None


def last_id_at(moment: datetime) -> UUID:
    """The largest id that can be made in the millisecond of this moment."""
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return UUID(int=milliseconds << 80 | _LAST_OF_MILLISECOND)


def made_at(identifier: UUID) -> datetime:
    """When an id was made, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=identifier.int >> 80)


async def find_fill(tx: Tx, organization_id: UUID, totals: Totals) -> Fill | None:
    rows = await tx.fetch(
        totals.statement("SELECT fence, walked_to, due_at FROM {fills} WHERE organization_id = %s"), (organization_id,)
    )
    return Fill(*rows[0]) if rows else None


async def lock_fill_if_free(tx: Tx, organization_id: UUID, totals: Totals) -> Fill | None:
    """None if there is no fill, or another batch or a recount has locked it. Listeners may go on beside it."""
    rows = await tx.fetch(
        totals.statement(
            "SELECT fence, walked_to, due_at FROM {fills} WHERE organization_id = %s FOR NO KEY UPDATE SKIP LOCKED"
        ),
        (organization_id,),
    )
    return Fill(*rows[0]) if rows else None


async def lock_fill(tx: Tx, organization_id: UUID, totals: Totals) -> None:
    """Waits for a transaction that has locked it."""
    await tx.fetch(totals.statement("SELECT FROM {fills} WHERE organization_id = %s FOR UPDATE"), (organization_id,))


async def insert_fills_if_new(tx: Tx, organization_id: UUID) -> None:
    """Fills that are done: no sale was stored before them."""
    await tx.execute(
        """
        INSERT INTO hourly_totals_fills (organization_id, fence, walked_to)
        VALUES (%(organization_id)s, %(start)s, %(start)s)
        ON CONFLICT (organization_id) DO NOTHING
        """,
        {"organization_id": organization_id, "start": NO_SALE},
    )
    await tx.execute(
        """
        INSERT INTO daily_totals_fills (organization_id, fence, walked_to, time_zone)
        VALUES (%(organization_id)s, %(start)s, %(start)s, %(time_zone)s)
        ON CONFLICT (organization_id) DO NOTHING
        """,
        {
            "organization_id": organization_id,
            "start": NO_SALE,
            "time_zone": await find_time_zone(tx, organization_id),
        },
    )


async def update_time_zone(tx: Tx, organization_id: UUID) -> None:
    """Count days in the zone that the organization has now."""
    await tx.execute(
        "UPDATE daily_totals_fills SET time_zone = %s WHERE organization_id = %s",
        (await find_time_zone(tx, organization_id), organization_id),
    )


async def has_other_time_zone(tx: Tx, organization_id: UUID) -> bool:
    """Before the first sale there are no days."""
    rows = await tx.fetch("SELECT time_zone FROM daily_totals_fills WHERE organization_id = %s", (organization_id,))
    return bool(rows) and rows[0][0] != await find_time_zone(tx, organization_id)


async def find_time_zone(tx: Tx, organization_id: UUID) -> str:
    """The organization's zone, or UTC if the database does not know that one."""
    rows = await tx.fetch("SELECT time_zone FROM organizations WHERE id = %s", (organization_id,))
    # An organization that is being deleted is not there any more.
    wanted: str = rows[0][0] if rows else "UTC"
    is_known = await tx.fetch("SELECT FROM pg_timezone_names WHERE name = %s", (wanted,))
    return wanted if is_known else "UTC"


async def lock_counting(tx: Tx) -> None:
    """Until the transaction ends no listener adds a sale to any totals; pages read them meanwhile. A listener locks the
    row of the daily fill before it reads the fences."""
    await tx.execute("LOCK TABLE daily_totals_fills IN EXCLUSIVE MODE")


async def delete_totals(tx: Tx, organization_id: UUID, totals: Totals) -> None:
    await tx.execute(totals.statement("DELETE FROM {totals} WHERE organization_id = %s"), (organization_id,))


async def restart_fill(tx: Tx, organization_id: UUID, totals: Totals, *, fence: UUID, due_at: datetime) -> None:
    await tx.execute(
        totals.statement("UPDATE {fills} SET fence = %s, walked_to = %s, due_at = %s WHERE organization_id = %s"),
        (fence, NO_SALE, due_at, organization_id),
    )


async def update_fill(
    tx: Tx, organization_id: UUID, totals: Totals, *, walked_to: UUID, due_at: datetime | None
) -> None:
    await tx.execute(
        totals.statement("UPDATE {fills} SET walked_to = %s, due_at = %s WHERE organization_id = %s"),
        (walked_to, due_at, organization_id),
    )
