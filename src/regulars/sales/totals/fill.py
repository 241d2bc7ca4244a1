"""Count sales into hours: new ones as they come, and those that were stored before there were totals in batches, from
the oldest on, each exactly once.

A batch and its progress are one transaction, so the worker counts nothing twice after a crash. The fill stays behind
the present by more than any request lasts: a sale is visible only when its transaction commits, and a sale that becomes
visible behind the fill would never be counted.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Uuids
from regulars.kit.db import Database, Tx
from regulars.work.queue import BLOCKED_ERRORS, BatchSize, Due, Queue, log_queue_error

BATCH_SALES: Final = 20_000
BEHIND: Final = timedelta(minutes=2)
RETRY_AFTER: Final = timedelta(seconds=30)
_NO_SALE: Final = UUID(int=0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# What follows the 48 bits of milliseconds in the largest UUIDv7 of its millisecond.
_LAST_OF_MILLISECOND: Final = 0x7FFF_BFFF_FFFF_FFFF_FFFF


class HourlyTotalsFill(Queue):
    """The fills of all organizations; a finished fill is never due again."""

    name = "sales.hourly_totals_fill"
    due = Due(table="hourly_totals_fills")
    poll_every_s = 5.0
    passes_at_once = 1

    def __init__(self) -> None:
        self._sizes = BatchSize(BATCH_SALES)

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        sales_max = self._sizes.of(organization_id)
        try:
            has_more = await fill_batch(database, organization_id, sales_max=sales_max)
        except BLOCKED_ERRORS as error:
            if self._sizes.halve(organization_id, sales_max):
                log_queue_error("sales.batch_halved", self.name, organization_id, error)
                return True
            raise
        self._sizes.grow(organization_id)
        return has_more


async def fill_batch(database: Database, organization_id: UUID, *, sales_max: int = BATCH_SALES) -> bool:
    """Count one batch; gives whether there is more to count now."""
    async with database.transaction() as tx:
        fill = await lock_fill_if_free(tx, organization_id)
        if fill is None or fill.due_at is None:
            return False
        bound = min(fill.fence, last_id_at(tx.now - BEHIND))
        if bound <= fill.walked_to:
            await update_fill(tx, organization_id, walked_to=fill.walked_to, due_at=tx.now + RETRY_AFTER)
            return False
        end = await _find_end_of_batch(
            tx, organization_id, after=fill.walked_to, until=bound, sales_max=min(sales_max, BATCH_SALES)
        )
        await add_range(tx, organization_id, after=fill.walked_to, until=end or bound)
        if end is not None:
            await update_fill(tx, organization_id, walked_to=end, due_at=tx.now)
            return True
        is_done = bound == fill.fence
        due_at = None if is_done else tx.now + RETRY_AFTER
        await update_fill(tx, organization_id, walked_to=bound, due_at=due_at)
    return False


async def recount(tx: Tx, organization_id: UUID) -> None:
    """Delete the totals and have the fill count every sale again; safe beside workers that count new sales.

    A transaction that counts holds its lock on the table until its commit, so all that was counted is deleted here, and
    belongs to sales up to the new fence. One that counts later sees the fence and leaves these sales to the fill. The
    row of the fill is locked first, as a batch of the fill does; a recount that did not wait for the batch would
    deadlock with it.
    """
    await insert_fill_if_new(tx, organization_id)
    await lock_fill(tx, organization_id)
    await lock_totals(tx)
    # A server whose clock is ahead makes ids from the future.
    newest = await find_newest_sale(tx, organization_id) or _NO_SALE
    await delete_totals(tx, organization_id)
    await restart_fill(tx, organization_id, fence=max(newest, last_id_at(tx.now)), due_at=tx.now)
    tx.touched.add((HourlyTotalsFill.name, organization_id))


def last_id_at(moment: datetime) -> UUID:
    """The largest id that can be made in the millisecond of this moment."""
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return UUID(int=milliseconds << 80 | _LAST_OF_MILLISECOND)


def made_at(identifier: UUID) -> datetime:
    """When an id was made, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=identifier.int >> 80)


# Totals are locked in the order of their key, so that two transactions cannot deadlock.
_ADD: Final[LiteralString] = """
GROUP BY 1, 2, 3, 4, 5
ORDER BY 2, 3, 4, 5
ON CONFLICT (organization_id, hour, store_id, currency, type) DO UPDATE
SET tickets = t.tickets + excluded.tickets,
    identified_tickets = t.identified_tickets + excluded.identified_tickets,
    amount_cents = t.amount_cents + excluded.amount_cents,
    discount_cents = t.discount_cents + excluded.discount_cents
"""
_SUMS: Final[LiteralString] = """
INSERT INTO hourly_totals AS t
    (organization_id, hour, store_id, currency, type, tickets, identified_tickets, amount_cents, discount_cents)
SELECT %(organization_id)s::uuid, date_trunc('hour', e.occurred_at, 'UTC'), e.store_id, e.currency, e.type,
       count(*), count(*) FILTER (WHERE e.profile_id IS NOT NULL OR e.anonymised_at IS NOT NULL),
       sum(e.total_amount_cents), sum(e.total_discount_cents)
"""


async def add_sales(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    """Add sales to the totals, but for those up to the fence, which the fill counts. Callers pass each sale once.

    The list stands in a sub-select, where the planner does not see how long it is: a plan for one that is known to be
    short looks cheaper than one for any, so it would be planned anew each time, which takes longer than running it.
    """
    await tx.execute(
        _SUMS  # noqa: S608  # the parts are ours
        + """
        FROM unnest((SELECT %(ids)s::uuid[])) AS wanted (id)
        CROSS JOIN LATERAL (
            SELECT store_id, currency, type, occurred_at, profile_id, anonymised_at,
                   total_amount_cents, total_discount_cents
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND id = wanted.id
            LIMIT 1
        ) AS e
        WHERE NOT EXISTS (
            SELECT FROM hourly_totals_fills AS f
            WHERE f.organization_id = %(organization_id)s AND wanted.id <= f.fence
        )
        """
        + _ADD,
        {"organization_id": organization_id, "ids": Uuids([identifier.bytes for identifier in ids])},
    )


async def add_range(tx: Tx, organization_id: UUID, *, after: UUID, until: UUID) -> None:
    """Count every sale with an id in this range."""
    await tx.execute(
        _SUMS
        + """
        FROM sales_events AS e
        WHERE e.organization_id = %(organization_id)s AND e.id > %(after)s AND e.id <= %(until)s
        """
        + _ADD,
        {"organization_id": organization_id, "after": after, "until": until},
    )


class Fill(NamedTuple):
    fence: UUID
    walked_to: UUID
    due_at: datetime | None


async def lock_fill_if_free(tx: Tx, organization_id: UUID) -> Fill | None:
    """None if there is no fill, or another transaction has locked it."""
    rows = await tx.fetch(
        "SELECT fence, walked_to, due_at FROM hourly_totals_fills WHERE organization_id = %s FOR UPDATE SKIP LOCKED",
        (organization_id,),
    )
    return Fill(*rows[0]) if rows else None


async def lock_fill(tx: Tx, organization_id: UUID) -> None:
    """Waits for a transaction that has locked it."""
    await tx.fetch("SELECT FROM hourly_totals_fills WHERE organization_id = %s FOR UPDATE", (organization_id,))


async def find_fill(tx: Tx, organization_id: UUID) -> Fill | None:
    rows = await tx.fetch(
        "SELECT fence, walked_to, due_at FROM hourly_totals_fills WHERE organization_id = %s", (organization_id,)
    )
    return Fill(*rows[0]) if rows else None


async def _find_end_of_batch(tx: Tx, organization_id: UUID, *, after: UUID, until: UUID, sales_max: int) -> UUID | None:
    """The id of the last of so many sales, or None if there are fewer."""
    rows = await tx.fetch(
        """
        SELECT id
        FROM sales_events
        WHERE organization_id = %(organization_id)s AND id > %(after)s AND id <= %(until)s
        ORDER BY id
        LIMIT 1 OFFSET %(skipped)s
        """,
        {"organization_id": organization_id, "after": after, "until": until, "skipped": sales_max - 1},
    )
    return rows[0][0] if rows else None


async def insert_fill_if_new(tx: Tx, organization_id: UUID) -> None:
    await tx.execute(
        """
        INSERT INTO hourly_totals_fills (organization_id, fence, walked_to, due_at)
        VALUES (%(organization_id)s, %(start)s, %(start)s, NULL)
        ON CONFLICT (organization_id) DO NOTHING
        """,
        {"organization_id": organization_id, "start": UUID(int=0)},
    )


async def lock_totals(tx: Tx) -> None:
    """Until the transaction ends no sale is added to the totals; pages read them meanwhile."""
    await tx.execute("LOCK TABLE hourly_totals IN SHARE ROW EXCLUSIVE MODE")


async def find_newest_sale(tx: Tx, organization_id: UUID) -> UUID | None:
    rows = await tx.fetch(
        "SELECT id FROM sales_events WHERE organization_id = %s ORDER BY id DESC LIMIT 1", (organization_id,)
    )
    return rows[0][0] if rows else None


async def delete_totals(tx: Tx, organization_id: UUID) -> None:
    await tx.execute("DELETE FROM hourly_totals WHERE organization_id = %s", (organization_id,))


async def restart_fill(tx: Tx, organization_id: UUID, *, fence: UUID, due_at: datetime) -> None:
    await tx.execute(
        "UPDATE hourly_totals_fills SET fence = %s, walked_to = %s, due_at = %s WHERE organization_id = %s",
        (fence, UUID(int=0), due_at, organization_id),
    )


async def update_fill(tx: Tx, organization_id: UUID, *, walked_to: UUID, due_at: datetime | None) -> None:
    await tx.execute(
        "UPDATE hourly_totals_fills SET walked_to = %s, due_at = %s WHERE organization_id = %s",
        (walked_to, due_at, organization_id),
    )
