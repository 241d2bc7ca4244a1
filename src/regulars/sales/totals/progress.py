"""How far the sales of an organization have been counted, and in which time zone."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx

NO_SALE: Final = UUID(int=0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# What follows the 48 bits of milliseconds in the largest UUIDv7 of its millisecond.
_LAST_OF_MILLISECOND: Final = 0x7FFF_BFFF_FFFF_FFFF_FFFF


class Fill(NamedTuple):
    """Sales up to the fence are counted by the fill, and those after it by the listener."""

    fence: UUID
    walked_to: UUID
    # None once all sales up to the fence are counted.
    due_at: datetime | None
    time_zone: str


def last_id_at(moment: datetime) -> UUID:
    """The largest id that can be made in the millisecond of this moment."""
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return UUID(int=milliseconds << 80 | _LAST_OF_MILLISECOND)


def made_at(identifier: UUID) -> datetime:
    """When an id was made, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=identifier.int >> 80)


async def find_fill(tx: Tx, organization_id: UUID) -> Fill | None:
    rows = await tx.fetch(
        "SELECT fence, walked_to, due_at, time_zone FROM sales_totals_fills WHERE organization_id = %s",
        (organization_id,),
    )
    return Fill(*rows[0]) if rows else None


async def lock_fill_if_free(tx: Tx, organization_id: UUID) -> Fill | None:
    """None if there is no fill, or another transaction has locked it."""
    rows = await tx.fetch(
        """
        SELECT fence, walked_to, due_at, time_zone FROM sales_totals_fills
        WHERE organization_id = %s
        FOR UPDATE SKIP LOCKED
        """,
        (organization_id,),
    )
    return Fill(*rows[0]) if rows else None


async def lock_fill(tx: Tx, organization_id: UUID) -> None:
    """Waits for a transaction that has locked it."""
    await tx.fetch("SELECT FROM sales_totals_fills WHERE organization_id = %s FOR UPDATE", (organization_id,))


async def insert_fill_if_new(tx: Tx, organization_id: UUID) -> bool:
    """A fill that is done: no sale was stored before it."""
    inserted = await tx.execute(
        """
        INSERT INTO sales_totals_fills (organization_id, fence, walked_to, due_at, time_zone)
        VALUES (%(organization_id)s, %(start)s, %(start)s, NULL, %(time_zone)s)
        ON CONFLICT (organization_id) DO NOTHING
        """,
        {
            "organization_id": organization_id,
            "start": NO_SALE,
            "time_zone": await find_time_zone(tx, organization_id),
        },
    )
    return bool(inserted)


async def find_time_zone(tx: Tx, organization_id: UUID) -> str:
    """The organization's zone, or UTC if the database does not know that one."""
    rows = await tx.fetch("SELECT time_zone FROM organizations WHERE id = %s", (organization_id,))
    # An organization that is being deleted is not there any more.
    wanted: str = rows[0][0] if rows else "UTC"
    is_known = await tx.fetch("SELECT FROM pg_timezone_names WHERE name = %s", (wanted,))
    return wanted if is_known else "UTC"


async def restart_fill(tx: Tx, organization_id: UUID, *, fence: UUID, due_at: datetime, time_zone: str) -> None:
    await tx.execute(
        """
        UPDATE sales_totals_fills SET fence = %s, walked_to = %s, due_at = %s, time_zone = %s
        WHERE organization_id = %s
        """,
        (fence, NO_SALE, due_at, time_zone, organization_id),
    )


async def update_fill(tx: Tx, organization_id: UUID, *, walked_to: UUID, due_at: datetime | None) -> None:
    await tx.execute(
        "UPDATE sales_totals_fills SET walked_to = %s, due_at = %s WHERE organization_id = %s",
        (walked_to, due_at, organization_id),
    )
