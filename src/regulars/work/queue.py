"""What a queue is: a table whose rows become due. A room describes its own, and the loop serves them all.

There are two kinds. A `RowQueue` acts on its rows in the transaction that takes them. A `ClaimQueue` (`claims.py`)
is for whatever talks to a network: it claims rows, talks outside any transaction, and writes down what came of it.
"""

import abc
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, Generic, LiteralString, Protocol, TypeVar
from uuid import UUID

import psycopg
from psycopg.errors import DiskFull, LockNotAvailable, ReadOnlySqlTransaction

from regulars.kit import log
from regulars.kit.bisect import bisect_failures
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.work.batch_size import HELD_UP, BatchSize

BITE_ROWS: Final = 200
PAGE_ITEMS_MAX: Final = 2_000

_log = log.get(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Due:
    """Where the loop looks for organizations with something to do.

    The table has an index on (column, organization_id) of only the rows that wait: those that are done or parked have
    no time there. `delay` is for rows that become due some time after the moment in the column, such as those kept
    for 24 hours.
    """

    table: LiteralString
    column: LiteralString = "due_at"
    delay: timedelta = timedelta(0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """The waits before the second, third, … attempt; a row that failed after all of them is parked."""

    waits_s: tuple[float, ...]
    # Each wait is made longer by up to this part of it, and never shorter.
    jitter: float = 0.0

    def due_at(self, now: datetime, *, attempts: int, chance: float = 0.0) -> datetime | None:
        """When to try again after so many failed attempts; None means never. `chance` is from 0 to 1."""
        if attempts > len(self.waits_s):
            return None
        return now + timedelta(seconds=self.waits_s[attempts - 1] * (1 + self.jitter * chance))


class Queue(abc.ABC):
    """Rows of organizations that become due. The name is stable: logs, metrics and wake-ups use it."""

    name: str
    due: Due
    # How often the loop looks by itself. A wake-up makes work prompt; the look makes it certain.
    look_every_s: float = 1.0
    # How many organizations are served at the same time; one organization has one turn at a time.
    turns_at_once: int = 2
    # Whether an organization's next turn may wait for up to a second, where many have turns, so that it has more to do.
    gathers: bool = False

    @abc.abstractmethod
    async def take_turn(self, database: Database, organization_id: UUID) -> bool:
        """Do a bounded bite of this organization's due work; answer whether more may be due already."""

    async def finish(self) -> None:  # noqa: B027  # most queues have nothing left to end
        """Called once when the loop stops: wait for whatever a turn left running."""


class TriedRow(Protocol):
    """A row knows how often it was tried before."""

    @property
    def attempts(self) -> int: ...


Row = TypeVar("Row", bound=TriedRow)
Item = TypeVar("Item")
Free = TypeVar("Free")


class RowQueue(Queue, Generic[Row]):
    """A queue whose rows are acted on in the transaction that takes them, so each takes effect exactly once.

    It must not talk to the network. If a batch fails it is rolled back and bisected until only the guilty rows fail;
    these wait for their next attempt, or are parked, and block no other row.

    A batch that meets a lock or times out is not bisected in its transaction, which would hold all locks for as many
    timeouts as there are parts: the next pass takes half as many rows. A row that waits for a lock alone is put
    off, and that is no attempt; one that times out alone fails like any other. If the rows could not even be
    taken, none of them fails: the next pass takes half as many.
    """

    schedule: Schedule
    bite_rows: int = BITE_ROWS

    @cached_property
    def _sizes(self) -> BatchSize:
        return BatchSize(self.bite_rows)

    @abc.abstractmethod
    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[Row]:
        """The due rows that nobody else holds, locked with FOR UPDATE SKIP LOCKED, the first to act on first."""

    @abc.abstractmethod
    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[Row]) -> None:
        """Act on the rows and write their outcome: delete them, or give them another due time, or none."""

    @abc.abstractmethod
    async def postpone(
        self, tx: Tx, organization_id: UUID, row: Row, *, attempts: int, due_at: datetime | None
    ) -> None:
        """Note a failed attempt and when to try again; without a time the row is parked."""

    async def note_failure(self, tx: Tx, organization_id: UUID, row: Row, error: Exception) -> None:
        """Keep why an attempt failed where people look for it; most queues leave it to the log."""

    async def take_turn(self, database: Database, organization_id: UUID) -> bool:
        limit = self._sizes.of(organization_id)
        rows: Sequence[Row] = ()
        # Two blocks, because the second attempt may be held up as well as the first.
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
                    await self._act_by_halves(tx, organization_id, rows)
        except HELD_UP as error:
            if not self._sizes.halve(organization_id, len(rows) or limit):
                if not rows:
                    raise
                await self._put_off(database, organization_id, error)
            return True
        self._sizes.grow(organization_id)
        return len(rows) == limit

    async def _put_off(self, database: Database, organization_id: UUID, error: Exception) -> None:
        """The first due row alone was held up."""
        async with database.transaction() as tx:
            for row in await self.take(tx, organization_id, limit=1):
                await self._fail(tx, organization_id, row, error)

    async def _act_on_all(self, tx: Tx, organization_id: UUID, rows: Sequence[Row]) -> None:
        """The usual case, with as few round trips as there are: if any row fails, none has taken effect."""
        try:
            await self.act(tx, organization_id, rows)
        except HELD_UP:
            raise
        except Exception as error:
            raise_if_lost(tx, error)
            raise RowsFailedError from error

    async def _act_by_halves(self, tx: Tx, organization_id: UUID, rows: Sequence[Row]) -> None:
        async def act(some: Sequence[Row]) -> None:
            await self.act(tx, organization_id, some)

        for row, error in await find_guilty(tx, rows, act):
            await self._fail(tx, organization_id, row, error)

    async def _fail(self, tx: Tx, organization_id: UUID, row: Row, error: Exception) -> None:
        attempts = row.attempts + 1
        due_at = self.schedule.due_at(tx.now, attempts=attempts)
        if isinstance(error, LockNotAvailable):
            attempts, due_at = row.attempts, self.schedule.due_at(tx.now, attempts=1)
        log_failure(self.name, organization_id, error, attempts=attempts, is_parked=due_at is None)
        await self.postpone(tx, organization_id, row, attempts=attempts, due_at=due_at)
        await self.note_failure(tx, organization_id, row, error)


async def take_free(
    find: Callable[[Item | None, int], Awaitable[Sequence[Item]]],
    lock: Callable[[Sequence[Item]], Awaitable[Sequence[Free]]],
    *,
    limit: int,
) -> list[Free]:
    """Up to `limit` due items that are free. Items that another transaction has locked are skipped in the same pass.

    `find` gives the items after one, in order; `lock` gives those of them that it could lock without waiting.
    """
    taken: list[Free] = []
    after: Item | None = None
    page = limit
    while len(taken) < limit:
        found = await find(after, page)
        taken += (await lock(found))[: limit - len(taken)] if found else []
        if len(found) < page:
            break
        # Pages grow: there may be thousands that one transaction holds.
        after, page = found[-1], min(2 * page, PAGE_ITEMS_MAX)
    return taken


class RowsFailedError(Exception):
    """A row failed, and what was taken together is to be tried again in halves."""


async def find_guilty(
    tx: Tx, items: Sequence[Item], act: Callable[[Sequence[Item]], Awaitable[None]]
) -> list[tuple[Item, Exception]]:
    """Act on the items, in halves where they fail; give those that fail alone. All others have taken effect.

    Being held up is no item's guilt, and in each half it would take as long again: it ends everything.
    """

    async def act_on(some: Sequence[Item]) -> list[tuple[Item, Exception]]:
        # A savepoint, so that what fails takes back only its own writes and its neighbours still commit.
        async with tx.connection.transaction():
            await act(some)
        return []

    def failed(some: Sequence[Item], error: Exception) -> list[tuple[Item, Exception]] | None:
        raise_if_lost(tx, error)
        if isinstance(error, HELD_UP):
            raise error
        return [(some[0], error)] if len(some) == 1 else None

    return await bisect_failures(items, act_on, failed) if items else []


def raise_if_lost(tx: Tx, error: Exception) -> None:
    """What the database cannot do for anybody is no row's guilt: the rows are still there for the next turn.

    That is a lost connection, a full disk or a standby. All of them may last for longer than rows are tried again, and
    nothing is to be parked for them.
    """
    if tx.connection.broken or isinstance(error, (psycopg.InterfaceError, DiskFull, ReadOnlySqlTransaction)):
        raise error


def log_trouble(event: str, name: str, organization_id: UUID, error: Exception, **about: str) -> None:
    """A database that is away, or that left no time for the rest, is no mistake of ours that a traceback would help to
    find."""
    about = {"queue": name, "organization_id": str(organization_id), **about}
    if isinstance(error, (*CONNECTION_ERRORS, TimeoutError)):
        _log.warning(event, error=type(error).__name__, **about)
    else:
        _log.error(event, exc_info=error, **about)


def log_failure(
    name: str, organization_id: UUID, error: Exception, *, attempts: int, is_parked: bool, **about: str
) -> None:
    """One line for an attempt that failed: a warning while there are more, an error with the last.

    That a row was held by somebody else for too long, or the database was away, is no mistake of ours either.
    """
    room = name.partition(".")[0]
    about = {"organization_id": str(organization_id), **about}
    if is_parked:
        _log.error(f"{room}.parked", attempts=attempts, exc_info=error, **about)
    elif isinstance(error, CONNECTION_ERRORS):
        _log.warning(f"{room}.postponed", attempts=attempts, error=type(error).__name__, **about)
    else:
        _log.warning(f"{room}.postponed", attempts=attempts, exc_info=error, **about)
