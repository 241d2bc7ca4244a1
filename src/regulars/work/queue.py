"""Base classes of work queues: a queue is a table whose rows have a due time. A module declares its queues, and the
worker's loop (`loop.py`) serves all of them.

A `RowQueue` acts on its rows in the transaction that takes them. A `ClaimQueue` (`claims.py`) is for network calls: it
claims rows, calls outside any transaction, and stores the outcome. A `Sweep` deletes rows whose retention has ended.
"""

import abc
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final, Generic, LiteralString, Protocol, TypeVar
from uuid import UUID

import psycopg
from psycopg.errors import DiskFull, LockNotAvailable, QueryCanceled, ReadOnlySqlTransaction

from regulars.kit import log
from regulars.kit.bisect import bisect_failures
from regulars.kit.columns import fill
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx

BATCH_ROWS: Final = 200
# The rows that a sweep deletes in one transaction.
SWEEP_ROWS: Final = 1_000
# The largest page of candidates that `take_free` tries to lock at once.
PAGE_ITEMS_MAX: Final = 2_000

# Another transaction holds a lock that the batch needs, or a statement timed out. A smaller batch may succeed.
BLOCKED_ERRORS: Final = (LockNotAvailable, QueryCanceled)

_log = log.get(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WaitLimit:
    """How long rows wait at most in the state that `condition` selects. A row that is due later was stored before the
    clock of the database was set back, and becomes due now (`clock_steps.py`).

    `at_most` has one time, or one for each number of failed attempts, from 1. `condition` may use `%(now)s`.
    """

    at_most: tuple[timedelta, ...]
    condition: LiteralString = "true"
    # Which of the times applies: an expression that counts from 1.
    number: LiteralString = "1"
    # Whether such a row waits the whole time once more, because what it waits for may still be running: a claim.
    waits_again: bool = False
    # Another column that delays the row, and is set to the same time.
    also: LiteralString | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Due:
    """The table and column in which the loop finds organizations with due rows.

    The table has a partial index on (column, organization_id) of the waiting rows: the column is NULL in rows that are
    done or parked. `delay` is for rows that become due some time after the time in the column, such as rows with a
    retention of 24 hours.

    `waits` has the states of rows that wait only for a short time. Rows in other states are due at a time that a user
    or a calendar chose, such as a campaign of next week.
    """

    table: LiteralString
    column: LiteralString = "due_at"
    delay: timedelta = timedelta(0)
    waits: tuple[WaitLimit, ...] = ()
    # The condition of the partial index, if a table has rows with a time that are not due in this queue.
    condition: LiteralString = "true"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """The waits before the second, third, … attempt. A row that fails after the last one is parked: it stays stored
    for the operator and is not tried again."""

    waits_s: tuple[float, ...]
    # Whether the last wait is repeated for ever instead, so that no row is parked.
    is_endless: bool = False
    # Each wait is extended by a random part of itself, of up to this share.
    jitter: float = 0.0

    def due_at(self, now: datetime, *, attempts: int, random_share: float = 0.0) -> datetime | None:
        """Return when to try again after this many failed attempts; None means never. `random_share` (0 to 1) scales
        the jitter."""
        if attempts > len(self.waits_s) and not self.is_endless:
            return None
        wait_s = self.waits_s[min(attempts, len(self.waits_s)) - 1]
        return now + timedelta(seconds=wait_s * (1 + self.jitter * random_share))

    def retries(self, condition: LiteralString = "true") -> WaitLimit:
        """The waits of rows that failed before."""
        longest = tuple(timedelta(seconds=wait_s * (1 + self.jitter)) for wait_s in self.waits_s)
        return WaitLimit(at_most=longest, condition="attempts > 0 AND " + condition, number="attempts")


class Queue(abc.ABC):
    """A queue. Its name is stable, because logs, metrics and wake-ups use it."""

    name: str
    due: Due
    # How often the loop polls the table. Wake-ups start work quickly; polling finds rows whose wake-up was lost.
    poll_every_s: float = 1.0
    # How many organizations have a pass (a batch of rows) at the same time; each has one pass at a time.
    passes_at_once: int = 2
    # Whether the next pass of an organization may wait for up to a second while many organizations are served, so that
    # batches are larger.
    delays_passes: bool = False

    @abc.abstractmethod
    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        """Handle one batch of this organization's due rows; return whether more rows may be due already."""

    async def finish(self) -> None:  # noqa: B027  # most queues have no running tasks
        """Wait for tasks that a pass left running; called once when the loop stops."""


class Sweep(Queue):
    """Deletes the rows whose retention has ended. Organizations without such rows cost nothing."""

    passes_at_once = 1

    def __init__(
        self, name: str, due: Due, run: Callable[[Database, UUID], Awaitable[object]], *, poll_every_s: float
    ) -> None:
        """`run` deletes the expired rows of an organization in small transactions."""
        self.name = name
        self.due = due
        self.poll_every_s = poll_every_s
        self._run = run

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        await self._run(database, organization_id)
        return False


class RowSweep(Sweep):
    """A sweep that deletes rows in batches; the retention is the delay of `due`."""

    def __init__(
        self, name: str, due: Due, delete: Callable[..., Awaitable[int]], *, poll_every_s: float = 3600
    ) -> None:
        run = partial(delete_in_batches, delete=delete, retention=due.delay)
        super().__init__(name, due, run, poll_every_s=poll_every_s)


async def delete_in_batches(
    database: Database, organization_id: UUID, delete: Callable[..., Awaitable[int]], *, retention: timedelta
) -> int:
    """Delete rows after their retention time, one batch in each transaction. `delete` returns how many rows it deleted:
    a full batch means that there may be more. Returns how many rows it deleted in all."""
    total, deleted = 0, SWEEP_ROWS
    while deleted == SWEEP_ROWS:
        async with database.transaction() as tx:
            deleted = await delete(tx, organization_id, before=tx.now - retention, limit=SWEEP_ROWS)
        total += deleted
    return total


class BatchSize:
    """The rows per batch of each organization: halved after a lock or a timeout, and increased after a success."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._reduced: dict[UUID, int] = {}

    def of(self, organization_id: UUID) -> int:
        return self._reduced.get(organization_id, self._rows_max)

    def halve(self, organization_id: UUID, rows: int) -> bool:
        """Halve the batch size after a batch of this many rows was blocked; return False if it was a single row."""
        if rows <= 1:
            return False
        self._reduced[organization_id] = min(rows, self.of(organization_id)) // 2
        return True

    def grow(self, organization_id: UUID) -> None:
        """Increase the batch size by a quarter after a batch that succeeded: slowly, so that most batches succeed."""
        rows = self._reduced.pop(organization_id, self._rows_max)
        rows += max(1, rows // 4)
        if rows < self._rows_max:
            self._reduced[organization_id] = rows


class TriedRow(Protocol):
    """A row with the number of its earlier attempts."""

    @property
    def attempts(self) -> int: ...


Row = TypeVar("Row", bound=TriedRow)
Item = TypeVar("Item")
Locked = TypeVar("Locked")


class RowQueue(Queue, Generic[Row]):
    """A queue that acts on its rows in the transaction that takes them, so each takes effect exactly once.

    `act` must not call the network. A batch that fails is rolled back and bisected until only the faulty rows fail;
    these wait for their next attempt, or are parked, and block no other row.

    A batch that meets a lock or times out is not bisected in its transaction, because each part might wait for another
    timeout while all locks are held; instead the next pass takes half as many rows, also if the batch could not even be
    taken. A single row that meets a lock is postponed, which does not count as an attempt; a single row that times out
    fails like any other.
    """

    schedule: Schedule
    batch_rows: int = BATCH_ROWS
    # The columns that identify a row of the organization; the row has attributes of the same names.
    key: tuple[LiteralString, ...] = ("id",)

    @cached_property
    def _sizes(self) -> BatchSize:
        return BatchSize(self.batch_rows)

    @abc.abstractmethod
    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[Row]:
        """Return the due rows, locked with FOR UPDATE SKIP LOCKED, in the order to act on them."""

    @abc.abstractmethod
    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[Row]) -> None:
        """Act on the rows and write their outcome: delete them, or set another due time or NULL."""

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: Row, *, attempts: int, due_at: datetime | None
    ) -> None:
        """Record a failed attempt and when to try again; `due_at=None` parks the row."""
        statement = fill(
            "UPDATE {table} SET attempts = %s, due_at = %s WHERE organization_id = %s {and_key}",
            table=self.due.table,
            and_key=" ".join(["AND " + name + " = %s" for name in self.key]),
        )
        key = [getattr(row, name) for name in self.key]
        await tx.execute(statement, (attempts, due_at, organization_id, *key))

    async def record_failure(self, tx: Tx, organization_id: UUID, row: Row, error: Exception) -> None:
        """Store why an attempt failed, for queues whose pages show it; others only log it."""

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        limit = self._sizes.of(organization_id)
        rows: Sequence[Row] = ()
        # The outer `try` block is for both attempts, because the second one may be blocked too.
        try:
            try:
                async with database.transaction() as tx:
                    rows = await self.take(tx, organization_id, limit=limit)
                    if rows:
                        await self._act_on_all(tx, organization_id, rows)
            except RowsFailedError:
                rows = ()
                async with database.transaction() as tx:
                    rows = await self.take(tx, organization_id, limit=limit)
                    await self._act_bisecting(tx, organization_id, rows)
        except BLOCKED_ERRORS as error:
            if not self._sizes.halve(organization_id, len(rows) or limit):
                if not rows:
                    raise
                await self._postpone_first(database, organization_id, error)
            return True
        self._sizes.grow(organization_id)
        return len(rows) == limit

    async def _postpone_first(self, database: Database, organization_id: UUID, error: Exception) -> None:
        """Postpone the first due row, which was blocked although it was the only row of its batch."""
        async with database.transaction() as tx:
            for row in await self.take(tx, organization_id, limit=1):
                await self._fail(tx, organization_id, row, error)

    async def _act_on_all(self, tx: Tx, organization_id: UUID, rows: Sequence[Row]) -> None:
        """Act on all rows together, for the fewest round trips; if any row fails, none takes effect."""
        try:
            await self.act(tx, organization_id, rows)
        except BLOCKED_ERRORS:
            raise
        except Exception as error:
            raise_if_lost(tx, error)
            raise RowsFailedError from error

    async def _act_bisecting(self, tx: Tx, organization_id: UUID, rows: Sequence[Row]) -> None:
        async def act(part: Sequence[Row]) -> None:
            await self.act(tx, organization_id, part)

        for row, error in await find_failing_items(tx, rows, act):
            await self._fail(tx, organization_id, row, error)

    async def _fail(self, tx: Tx, organization_id: UUID, row: Row, error: Exception) -> None:
        attempts = row.attempts + 1
        due_at = self.schedule.due_at(tx.now, attempts=attempts)
        if isinstance(error, LockNotAvailable):
            attempts, due_at = row.attempts, self.schedule.due_at(tx.now, attempts=1)
        log_failure(self.name, organization_id, error, attempts=attempts, is_parked=due_at is None)
        await self.postpone(tx, organization_id, row, attempts=attempts, due_at=due_at)
        await self.record_failure(tx, organization_id, row, error)


async def take_free(
    find: Callable[[Item | None, int], Awaitable[Sequence[Item]]],
    lock: Callable[[Sequence[Item]], Awaitable[Sequence[Locked]]],
    *,
    limit: int,
) -> list[Locked]:
    """Lock and return up to `limit` due items, and skip those that another transaction has locked.

    `find(after, count)` returns the next items after one, in order; `lock` locks items without waiting and returns the
    locked ones.
    """
    taken: list[Locked] = []
    after: Item | None = None
    page = limit
    while len(taken) < limit:
        items = await find(after, page)
        taken += (await lock(items))[: limit - len(taken)] if items else []
        if len(items) < page:
            break
        # Pages grow, because one transaction may have locked thousands of items.
        after, page = items[-1], min(2 * page, PAGE_ITEMS_MAX)
    return taken


class RowsFailedError(Exception):
    """A row of the batch failed; the batch is to be run again with bisection."""


async def find_failing_items(
    tx: Tx, items: Sequence[Item], act: Callable[[Sequence[Item]], Awaitable[None]]
) -> list[tuple[Item, Exception]]:
    """Act on the items, and bisect them if they fail; return the items that fail alone. All others have taken effect.

    An error because of a lock or a timeout is raised: no item caused it, and after a bisection each part would wait
    again.
    """

    async def act_on(part: Sequence[Item]) -> list[tuple[Item, Exception]]:
        # A savepoint, so that a failure rolls back only the writes of this part.
        async with tx.connection.transaction():
            await act(part)
        return []

    def on_failure(part: Sequence[Item], error: Exception) -> list[tuple[Item, Exception]] | None:
        raise_if_lost(tx, error)
        if isinstance(error, BLOCKED_ERRORS):
            raise error
        return [(part[0], error)] if len(part) == 1 else None

    return await bisect_failures(items, act_on, on_failure) if items else []


def raise_if_lost(tx: Tx, error: Exception) -> None:
    """Raise errors of the database itself: a lost connection, a full disk or a standby.

    No row caused them, and they may last longer than the retry schedule, so no row may be parked because of them.
    """
    if tx.connection.broken or isinstance(error, (psycopg.InterfaceError, DiskFull, ReadOnlySqlTransaction)):
        raise error


def log_queue_error(event: str, name: str, organization_id: UUID, error: Exception, **log_values: str) -> None:
    """Log an error of a pass. An unreachable or slow database is not a bug of ours, so it is logged without a
    traceback."""
    log_values = {"queue": name, "organization_id": str(organization_id), **log_values}
    if isinstance(error, (*CONNECTION_ERRORS, TimeoutError)):
        _log.warning(event, error=type(error).__name__, **log_values)
    else:
        _log.error(event, exc_info=error, **log_values)


def log_failure(
    name: str, organization_id: UUID, error: Exception, *, attempts: int, is_parked: bool, **log_values: str
) -> None:
    """Log a failed attempt: a warning while attempts are left, an error for the last.

    A row that stayed locked, or an unreachable database, is not a bug of ours: the warning has no traceback.
    """
    module = name.partition(".")[0]
    log_values = {"organization_id": str(organization_id), **log_values}
    if is_parked:
        _log.error(f"{module}.parked", attempts=attempts, exc_info=error, **log_values)
    elif isinstance(error, CONNECTION_ERRORS):
        _log.warning(f"{module}.postponed", attempts=attempts, error=type(error).__name__, **log_values)
    else:
        _log.warning(f"{module}.postponed", attempts=attempts, exc_info=error, **log_values)
