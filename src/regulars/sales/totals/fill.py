"""Count sales into hours: new ones as they come, and those that were stored before there were totals in batches, from
the oldest on, each exactly once.

A batch and the note of how far it went are one transaction, so whoever goes on after a crash counts nothing twice. The
walk stays behind the present by more than any request lasts: a sale shows only when its transaction commits, and one
that shows up behind the walk would never be counted.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.sales.totals import queries
from regulars.work.queue import BLOCKED_ERRORS, BatchSize, Due, Queue, log_queue_error

BITE_SALES: Final = 20_000
BEHIND: Final = timedelta(minutes=2)
LOOK_AGAIN_AFTER: Final = timedelta(seconds=30)
_NO_SALE: Final = UUID(int=0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# What follows the 48 bits of milliseconds in the largest UUIDv7 of its millisecond.
_LAST_OF_MILLISECOND: Final = 0x7FFF_BFFF_FFFF_FFFF_FFFF


class HourlyTotalsFill(Queue):
    """The fills of all organizations; one that is done is never looked at again."""

    name = "sales.hourly_totals_fill"
    due = Due(table="hourly_totals_fills")
    poll_every_s = 5.0
    passes_at_once = 1

    def __init__(self) -> None:
        self._sizes = BatchSize(BITE_SALES)

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        sales_max = self._sizes.of(organization_id)
        try:
            has_more = await take_bite(database, organization_id, sales_max=sales_max)
        except BLOCKED_ERRORS as error:
            if self._sizes.halve(organization_id, sales_max):
                log_queue_error("sales.batch_halved", self.name, organization_id, error)
                return True
            raise
        self._sizes.grow(organization_id)
        return has_more


async def take_bite(database: Database, organization_id: UUID, *, sales_max: int = BITE_SALES) -> bool:
    """Count one bite; answer whether there is more to count already."""
    async with database.transaction() as tx:
        fill = await queries.lock_fill_if_free(tx, organization_id)
        if fill is None or fill.due_at is None:
            return False
        bound = min(fill.fence, last_id_at(tx.now - BEHIND))
        if bound <= fill.walked_to:
            await queries.update_fill(tx, organization_id, walked_to=fill.walked_to, due_at=tx.now + LOOK_AGAIN_AFTER)
            return False
        end = await queries.find_end_of_stretch(
            tx, organization_id, after=fill.walked_to, until=bound, sales_max=min(sales_max, BITE_SALES)
        )
        await queries.add_stretch(tx, organization_id, after=fill.walked_to, until=end or bound)
        if end is not None:
            await queries.update_fill(tx, organization_id, walked_to=end, due_at=tx.now)
            return True
        is_done = bound == fill.fence
        due_at = None if is_done else tx.now + LOOK_AGAIN_AFTER
        await queries.update_fill(tx, organization_id, walked_to=bound, due_at=due_at)
    return False


async def recount(tx: Tx, organization_id: UUID) -> None:
    """Delete the totals and have the fill count every sale again; safe beside workers that count new sales.

    A transaction that counts holds its lock on the table until its commit, so all that was counted is deleted here, and
    belongs to sales up to the new fence. One that counts later sees the fence and leaves these sales to the fill. The
    row of the fill is locked first, as a batch of the fill does; a recount that did not wait for the batch would
    deadlock with it.
    """
    await queries.insert_fill_if_new(tx, organization_id)
    await queries.lock_fill(tx, organization_id)
    await queries.lock_totals(tx)
    # A server whose clock is ahead makes ids from the future.
    newest = await queries.find_newest_sale(tx, organization_id) or _NO_SALE
    await queries.delete_totals(tx, organization_id)
    await queries.restart_fill(tx, organization_id, fence=max(newest, last_id_at(tx.now)), due_at=tx.now)
    tx.touched.add((HourlyTotalsFill.name, organization_id))


def last_id_at(moment: datetime) -> UUID:
    """The largest id that can be made in the millisecond of this moment."""
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return UUID(int=milliseconds << 80 | _LAST_OF_MILLISECOND)


def made_at(identifier: UUID) -> datetime:
    """When an id was made, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=identifier.int >> 80)


async def count_sales(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    """Add sales to the totals; whoever calls sees to it that each sale comes here once.

    Sales that were stored before there were totals are left to the fill, which knows them by their ids.
    """
    if ids:
        await queries.add_sales(tx, organization_id, list(ids))
