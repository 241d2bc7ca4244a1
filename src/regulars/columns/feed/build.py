"""Builds an organization's columns, a columnar copy of customers and sales, in batches. Each batch is one transaction,
which also records the progress.

Meanwhile rows change. A fact is a recorded event about changed rows; listeners (`fact_handlers.py`) apply it.

1. *waiting*: transactions that begin after the build was started record facts. Transactions that were already open may
   not, so the build waits until they have ended.
2. *customers*: copies profiles in the order of their ids. A later change of a profile is a fact.
3. *sales*: copies sales in the order of their ids, except those that listeners already wrote or will write from a fact.

A crash loses only the batch that was not committed. Each build has a new number, the epoch; rows of earlier epochs are
deleted in batches as well.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from psycopg.errors import ProgramLimitExceeded, QueryCanceled

from regulars.columns import column_rows as columns
from regulars.columns.feed import queries, sales_queries
from regulars.columns.feed.runs import write_customers, write_sales
from regulars.columns.lifecycle import BUILD_QUEUE, begin_epoch
from regulars.columns.model import FORMAT, State
from regulars.kit.db import Database, Tx
from regulars.work.queue import BLOCKED_ERRORS, BatchSize, Due, Queue, WaitLimit, log_queue_error

BATCH_CUSTOMERS: Final = 4_000
# Listeners have to wait while a batch runs, so a batch of sales takes less than half a second.
BATCH_SALES: Final = 16_000
BATCH_OLD_ROWS: Final = 5_000
WAIT_INTERVAL: Final = timedelta(seconds=1)


class ColumnsBuild(Queue):
    """The builds of all organizations, and the cleanup of old epochs."""

    name = BUILD_QUEUE
    due = Due(table="segment_columns", column="build_at", waits=(WaitLimit(at_most=(WAIT_INTERVAL,)),))
    poll_every_s = 2.0

    def __init__(self) -> None:
        self._sizes = BatchSize(BATCH_SALES)

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        rows = self._sizes.of(organization_id)
        try:
            has_more = await run_batch(database, organization_id, rows_max=rows)
        except (*BLOCKED_ERRORS, ProgramLimitExceeded) as error:
            # A batch that is too slow, or whose lines exceed 1 GB, would fail again, so it is halved.
            if isinstance(error, QueryCanceled | ProgramLimitExceeded) and self._sizes.halve(organization_id, rows):
                log_queue_error("segments.batch_halved", self.name, organization_id, error)
                return True
            raise
        self._sizes.grow(organization_id)
        return has_more


async def run_batch(database: Database, organization_id: UUID, *, rows_max: int = BATCH_SALES) -> bool:
    """Run one batch; return whether the next batch is due now."""
    async with database.transaction() as tx:
        state = await columns.lock_state(tx, organization_id, longest_wait=columns.WORKER_LOCK_TIMEOUT)
        if state is None or state.build_at is None or state.build_at > tx.now or state.format > FORMAT:
            return False
        if state.state != "ended" and state.format < FORMAT:
            await begin_epoch(tx, organization_id, state)
        elif state.is_littered:
            await _delete_old_rows(tx, organization_id, state)
        elif state.state == "building":
            await _run_phase(tx, organization_id, state, rows_max=rows_max)
        else:
            state.build_at = None
        if state.state == "ended" and not state.is_littered:
            await columns.delete_state(tx, organization_id)
            return False
        await columns.update_state(tx, organization_id, state)
        return state.build_at is not None and state.build_at <= tx.now


async def _delete_old_rows(tx: Tx, organization_id: UUID, state: State) -> None:
    """Delete rows of earlier epochs and, after a build, the list of sales that listeners wrote during it."""
    before = state.epoch + 1 if state.state == "ended" else state.epoch
    deleted = await queries.delete_old_epochs(tx, organization_id, before=before, limit=BATCH_OLD_ROWS)
    if not deleted and state.state == "ready":
        deleted = await queries.delete_written_sales(tx, organization_id, state.epoch, limit=BATCH_OLD_ROWS)
    state.is_littered = bool(deleted)


async def _run_phase(tx: Tx, organization_id: UUID, state: State, *, rows_max: int) -> None:
    state.build_at = tx.now
    match state.phase:
        case "waiting":
            await _wait_for_older_transactions(tx, organization_id, state)
        case "customers":
            await _copy_customers(tx, organization_id, state, limit=min(rows_max, BATCH_CUSTOMERS))
        case _:
            await _copy_sales(tx, organization_id, state, limit=min(rows_max, BATCH_SALES))


async def _wait_for_older_transactions(tx: Tx, organization_id: UUID, state: State) -> None:
    """Store the next transaction id (`fence`) and the time, in one batch; in later batches, wait until all older
    transactions have ended."""
    next_id, now = await queries.find_next_transaction_id(tx)
    if state.fence is None or state.fenced_at is None or state.fence > next_id:
        # This transaction sees the commit that started the build, so every later transaction sees it too. A stored id
        # above the next id comes from another PostgreSQL cluster, through a restored backup.
        state.fence, state.fenced_at = next_id, now
        return
    if await queries.has_older_transaction(tx, below=state.fence, before=state.fenced_at):
        state.build_at = tx.now + WAIT_INTERVAL
        return
    state.begin_phase("customers", tx.now)
    state.total = await queries.count_profiles(tx, organization_id)


async def _copy_customers(tx: Tx, organization_id: UUID, state: State, *, limit: int) -> None:
    """Copy the next batch of profiles; `walked_to` is the last id that was copied."""
    ids = await queries.list_profile_ids(tx, organization_id, after=state.walked_to, limit=limit)
    await write_customers(tx, organization_id, state, ids)
    state.done += len(ids)
    state.request_compaction(tx.now)
    if len(ids) == limit:
        state.walked_to = ids[-1]
        return
    state.begin_phase("sales", tx.now)
    state.total = await columns.estimate_sales(tx, organization_id)


async def _copy_sales(tx: Tx, organization_id: UUID, state: State, *, limit: int) -> None:
    sales = await sales_queries.list_sales_to_build(tx, organization_id, after=state.walked_to, limit=limit)
    count = 0
    if sales is not None:
        count = len(sales.types)
        # `written` and `waiting` are read after the sales. A fact commits together with its sales. The transaction that
        # writes the sales to the columns also deletes the fact; it has to wait for the lock on the state, which the
        # caller holds. So each sale is either named by a waiting fact, or was already written, or is written here.
        first, last = UUID(bytes=sales.ids[0]), UUID(bytes=sales.ids[-1])
        written = await sales_queries.find_written_sales(tx, organization_id, state.epoch, first=first, last=last)
        waiting = await sales_queries.find_waiting_sales(tx, organization_id, first=first, last=last)
        await write_sales(tx, organization_id, state, sales, without=written | waiting)
        state.walked_to = last
    state.done += count
    state.request_compaction(tx.now)
    if count == limit:
        return
    state.state, state.phase, state.is_littered = "ready", "done", True
