"""Count sales that were stored before there were totals, in batches from the oldest on, each exactly once.

A batch and its progress are one transaction, so the worker counts nothing twice after a crash. The fill stays behind
the present by more than any request lasts: a sale is visible only when its transaction commits, and a sale that becomes
visible behind the fill would never be counted.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.sales.totals import tables
from regulars.sales.totals.count import SALES_MAX, add_range
from regulars.sales.totals.tables import DAILY, HOURLY, NO_SALE, Totals, last_id_at
from regulars.work.queue import BLOCKED_ERRORS, BatchSize, Due, Queue, log_queue_error

BATCH_SALES: Final = SALES_MAX
BEHIND: Final = timedelta(minutes=2)
RETRY_AFTER: Final = timedelta(seconds=30)


class TotalsFill(Queue):
    """The fills of one of the tables for all organizations; a finished fill is never due again."""

    poll_every_s = 5.0
    passes_at_once = 1

    def __init__(self, totals: Totals) -> None:
        self.name = totals.queue
        self.due = Due(table=totals.fills)
        self._totals = totals
        self._sizes = BatchSize(BATCH_SALES)

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        sales_max = self._sizes.of(organization_id)
        try:
            has_more = await fill_batch(database, organization_id, self._totals, sales_max=sales_max)
        except BLOCKED_ERRORS as error:
            if self._sizes.halve(organization_id, sales_max):
                log_queue_error("sales.batch_halved", self.name, organization_id, error)
                return True
            raise
        self._sizes.grow(organization_id)
        return has_more


async def fill_batch(
    database: Database, organization_id: UUID, totals: Totals, *, sales_max: int = BATCH_SALES
) -> bool:
    """Count one batch; gives whether there is more to count now."""
    async with database.transaction() as tx:
        fill = await tables.lock_fill_if_free(tx, organization_id, totals)
        if fill is None or fill.due_at is None:
            return False
        bound = min(fill.fence, last_id_at(tx.now - BEHIND))
        if bound <= fill.walked_to:
            await tables.update_fill(tx, organization_id, totals, walked_to=fill.walked_to, due_at=tx.now + RETRY_AFTER)
            return False
        end = await _find_end_of_batch(
            tx, organization_id, after=fill.walked_to, until=bound, sales_max=min(sales_max, BATCH_SALES)
        )
        await add_range(tx, organization_id, totals, after=fill.walked_to, until=end or bound)
        if end is not None:
            await tables.update_fill(tx, organization_id, totals, walked_to=end, due_at=tx.now)
            return True
        due_at = None if bound == fill.fence else tx.now + RETRY_AFTER
        await tables.update_fill(tx, organization_id, totals, walked_to=bound, due_at=due_at)
    return False


async def recount(tx: Tx, organization_id: UUID) -> None:
    """Delete all totals and have the fills count every sale again; safe beside workers that count new sales."""
    await _recount(tx, organization_id, (HOURLY, DAILY))


async def follow_time_zone(tx: Tx, organization_id: UUID) -> None:
    """Have the days counted again if the organization has another time zone than when they were."""
    if await tables.has_other_time_zone(tx, organization_id):
        await _recount(tx, organization_id, (DAILY,))


async def _recount(tx: Tx, organization_id: UUID, chosen: Sequence[Totals]) -> None:
    """A transaction that counts holds its lock until its commit, so all that was counted is deleted here, and belongs
    to sales up to the new fence. One that counts later sees the fence and leaves these sales to the fill. The row of a
    fill is locked before the totals, as a batch of the fill does; a recount that did not wait for the batch would
    deadlock with it.
    """
    await tables.lock_counting(tx)
    await tables.insert_fills_if_new(tx, organization_id)
    # A server whose clock is ahead makes ids from the future.
    fence = max(await _find_newest_sale(tx, organization_id) or NO_SALE, last_id_at(tx.now))
    for totals in chosen:
        await tables.lock_fill(tx, organization_id, totals)
        await tables.delete_totals(tx, organization_id, totals)
        await tables.restart_fill(tx, organization_id, totals, fence=fence, due_at=tx.now)
        tx.touched.add((totals.queue, organization_id))
    await tables.update_time_zone(tx, organization_id)


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


async def _find_newest_sale(tx: Tx, organization_id: UUID) -> UUID | None:
    rows = await tx.fetch(
        "SELECT id FROM sales_events WHERE organization_id = %s ORDER BY id DESC LIMIT 1", (organization_id,)
    )
    return rows[0][0] if rows else None
