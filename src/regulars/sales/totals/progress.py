"""Read and store the progress of the fill, the job that counts older sales, and the time zone in which it counts."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.time_zones import find_zone

NO_SALE: Final = UUID(int=0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The last 80 bits of the largest UUIDv7 of a millisecond; the first 48 bits are the millisecond.
_LAST_OF_MILLISECOND: Final = 0x7FFF_BFFF_FFFF_FFFF_FFFF
# Cache of time zones that the database knows. PostgreSQL reads all its time zone files for each query about them, which
# takes tens of milliseconds.
_KNOWN_ZONES: Final[set[str]] = set()


class Fill(NamedTuple):
    """The progress of the fill, which counts the sales with ids up to `fence`; the listener of new sales counts later
    ones. The fill has counted the sales with ids up to `walked_to`."""

    fence: UUID
    walked_to: UUID
    # None once all sales up to the fence are counted.
    due_at: datetime | None
    time_zone: str


def last_id_at(moment: datetime) -> UUID:
    """Return the largest id of this millisecond."""
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return UUID(int=milliseconds << 80 | _LAST_OF_MILLISECOND)


def made_at(identifier: UUID) -> datetime:
    """Return when an id was made, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=identifier.int >> 80)


async def find_fill(tx: Tx, organization_id: UUID) -> Fill | None:
    return await tx.fetch_first(
        Fill, "SELECT {columns} FROM sales_totals_fills WHERE organization_id = %s", (organization_id,)
    )


async def lock_fill_if_free(tx: Tx, organization_id: UUID) -> Fill | None:
    """Lock the row of the fill for a batch; None if there is none, or another transaction has locked it. Workers count
    new sales meanwhile."""
    return await tx.fetch_first(
        Fill,
        "SELECT {columns} FROM sales_totals_fills WHERE organization_id = %s FOR NO KEY UPDATE SKIP LOCKED",
        (organization_id,),
    )


async def lock_fill(tx: Tx, organization_id: UUID) -> None:
    """Lock the row of the fill for a recount; wait for a batch of the fill and for workers that count new sales."""
    await tx.fetch("SELECT FROM sales_totals_fills WHERE organization_id = %s FOR UPDATE", (organization_id,))


async def share_fill(tx: Tx, organization_id: UUID) -> None:
    """Lock the row of the fill to count new sales: no recount begins until the transaction ends. Before the first sale
    of an organization there is no row, so it is inserted."""
    if not await _share_fill_if_present(tx, organization_id) and not await insert_fill_if_new(tx, organization_id):
        # Another worker has inserted the row at the same time.
        await _share_fill_if_present(tx, organization_id)


async def _share_fill_if_present(tx: Tx, organization_id: UUID) -> bool:
    query = "SELECT FROM sales_totals_fills WHERE organization_id = %s FOR KEY SHARE"
    return bool(await tx.fetch(query, (organization_id,)))


async def insert_fill_if_new(tx: Tx, organization_id: UUID) -> bool:
    """Insert the row of a complete fill, because there are no older sales to count; return whether it was new."""
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
    """Return the organization's time zone, or UTC if this machine or the database does not know that zone: pages and
    totals then have the same days."""
    rows = await tx.fetch("SELECT time_zone FROM organizations WHERE id = %s", (organization_id,))
    # There is no row if the organization is being deleted.
    name: str = rows[0][0] if rows else "UTC"
    if name not in _KNOWN_ZONES:
        is_known = await tx.fetch("SELECT FROM pg_timezone_names WHERE name = %s", (name,))
        if not is_known or find_zone(name).key != name:
            return "UTC"
        _KNOWN_ZONES.add(name)
    return name


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
