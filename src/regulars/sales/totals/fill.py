"""The fill: a job that adds older sales to the totals, in batches, oldest first, each sale exactly once. It counts the
sales with ids up to an id called *fence*; the listener of new sales counts those with later ids.

A batch and its progress are one transaction, so the worker counts nothing twice after a crash. The fill counts only
sales that are older than the longest request: a sale becomes visible when its transaction commits, and if the fill had
passed its id before that, the sale would never be counted.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.sales.totals import progress
from regulars.sales.totals.count import add_range
from regulars.sales.totals.progress import NO_SALE, last_id_at
from regulars.work.queue import BLOCKED_ERRORS, BatchSize, Due, Queue, WaitLimit, log_queue_error

BATCH_SALES: Final = 20_000
# The minimum age of the sales that the fill counts, longer than any request takes.
SALE_AGE_MIN: Final = timedelta(minutes=2)
# The pause while the fill waits for sales to reach that age.
RETRY_AFTER: Final = timedelta(seconds=30)


class TotalsFill(Queue):
    """The work queue of the fills of all organizations; a finished fill is never due again."""

    name = "sales.hourly_totals_fill"
    due = Due(table="sales_totals_fills", waits=(WaitLimit(at_most=(RETRY_AFTER,)),))
    poll_every_s = 5.0
    passes_at_once = 1

    def __init__(self) -> None:
        self._sizes = BatchSize(BATCH_SALES)

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        sales_max = self._sizes.of(organization_id)
        try:
            has_more = await fill_batch(database, organization_id, sales_max=sales_max)
        except BLOCKED_ERRORS as error:
            # A lock or a timeout: the next pass tries a batch of half the size.
            if self._sizes.halve(organization_id, sales_max):
                log_queue_error("sales.batch_halved", self.name, organization_id, error)
                return True
            raise
        self._sizes.grow(organization_id)
        return has_more


async def fill_batch(database: Database, organization_id: UUID, *, sales_max: int = BATCH_SALES) -> bool:
    """Count one batch of sales; return whether more sales can be counted now."""
    async with database.transaction() as tx:
        fill = await progress.lock_fill_if_free(tx, organization_id)
        if fill is None or fill.due_at is None:
            return False
        # `walked_to` is the id up to which sales are counted.
        bound = min(fill.fence, last_id_at(tx.now - SALE_AGE_MIN))
        if bound <= fill.walked_to:
            await progress.update_fill(tx, organization_id, walked_to=fill.walked_to, due_at=tx.now + RETRY_AFTER)
            return False
        end = await _find_end_of_batch(
            tx, organization_id, after=fill.walked_to, until=bound, sales_max=min(sales_max, BATCH_SALES)
        )
        await add_range(tx, organization_id, after=fill.walked_to, until=end or bound)
        if end is not None:
            await progress.update_fill(tx, organization_id, walked_to=end, due_at=tx.now)
            return True
        due_at = None if bound == fill.fence else tx.now + RETRY_AFTER
        await progress.update_fill(tx, organization_id, walked_to=bound, due_at=due_at)
    return False


async def recount_if_time_zone_changed(tx: Tx, organization_id: UUID) -> None:
    """Request a recount if the organization's time zone differs from the one in which sales were counted."""
    fill = await progress.find_fill(tx, organization_id)
    # Without a row of the fill no sale was counted yet.
    if fill is not None and fill.time_zone != await progress.find_time_zone(tx, organization_id):
        await recount(tx, organization_id)


async def recount(tx: Tx, organization_id: UUID) -> None:
    """Delete the totals and have the fill count every sale again, while workers may be counting new sales.

    A transaction that counts shares the row of the fill until its commit, and this one locks it. So everything that was
    counted before is deleted here, and belongs to sales up to the new fence. A transaction that counts later sees the
    fence and skips these sales, because the fill counts them. Only transactions of the same organization wait.
    """
    await progress.insert_fill_if_new(tx, organization_id)
    await progress.lock_fill(tx, organization_id)
    # The newest id may be in the future, if the clock of the server that made it is ahead.
    newest = await _find_newest_sale(tx, organization_id) or NO_SALE
    await _delete_totals(tx, organization_id)
    await progress.restart_fill(
        tx,
        organization_id,
        fence=max(newest, last_id_at(tx.now)),
        due_at=tx.now,
        time_zone=await progress.find_time_zone(tx, organization_id),
    )
    tx.queues_to_wake.add((TotalsFill.name, organization_id))


async def _delete_totals(tx: Tx, organization_id: UUID) -> None:
    await tx.execute("DELETE FROM sales_totals WHERE organization_id = %s", (organization_id,))


async def _find_end_of_batch(tx: Tx, organization_id: UUID, *, after: UUID, until: UUID, sales_max: int) -> UUID | None:
    """Return the id of the last of the next `sales_max` sales, or None if there are fewer."""
    return await tx.fetch_value(
        """
        SELECT id
        FROM sales_events
        WHERE organization_id = %(organization_id)s AND id > %(after)s AND id <= %(until)s
        ORDER BY id
        LIMIT 1 OFFSET %(skipped)s
        """,
        {"organization_id": organization_id, "after": after, "until": until, "skipped": sales_max - 1},
    )


async def _find_newest_sale(tx: Tx, organization_id: UUID) -> UUID | None:
    return await tx.fetch_value(
        "SELECT id FROM sales_events WHERE organization_id = %s ORDER BY id DESC LIMIT 1", (organization_id,)
    )
