"""The database: connections with a deadline, and transactions with a timestamp.

All statements run in READ COMMITTED with UTC as the session's time zone (`db_session.py`). The timestamp of the
transaction is the only clock for decisions (`Tx.now`); SQL texts never store `now()` themselves.

A connection is lent until a deadline. Then its socket is closed: a caller that waits on it gets a connection error,
even when the database is stopped, unreachable or too busy to handle a request to cancel.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from math import inf
from typing import LiteralString, TypeVar
from uuid import UUID

import psycopg
from psycopg.errors import DeadlockDetected, InFailedSqlTransaction, LockNotAvailable, ReadOnlySqlTransaction
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from regulars.kit import arrays, db_session
from regulars.kit.clock import DatabaseClock, monotonic, truncate_to_milliseconds
from regulars.kit.columns import fill, names_of
from regulars.kit.connection import Connection, Params, Query
from regulars.kit.pool import Pool

T = TypeVar("T")

POOL_WAIT_S = 5.0
UNANSWERED_MARGIN_MS = 5_000
STATEMENT_TIMEOUT_MS = 30_000
IDLE_IN_TRANSACTION_MS = 60_000
LOCK_TIMEOUT_MS = 500
# Connections of the pool that reads may not use, so that writes always find one.
RESERVED_FOR_WRITES = 2
# The usual number of batches in flight that record sales: one shared by several organizations, and several of one.
RECORDING_MAX = 8
LOOKING_UP_MAX = 2
# One more connection, only for reads that block a whole request, such as authentication.
URGENT_MAX = 1

# Errors after which a retry may succeed.
CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError, ReadOnlySqlTransaction)
# The statement wrote nothing because of its rows or of another transaction's lock; the connection can be used again.
REFUSED_ERRORS = (psycopg.DataError, psycopg.IntegrityError, DeadlockDetected, LockNotAvailable)

_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


@dataclass(frozen=True, slots=True)
class Tx:
    """One open transaction (or, for reads, one connection) and its timestamp."""

    connection: Connection
    now: datetime
    # The queues that got rows from this transaction, each with its organization; passed to `Database.after_commit`.
    touched: set[tuple[str, UUID]] = field(default_factory=set)
    # Called with True after the commit and with False after a rollback; not at all where the connection was lost during
    # the commit, because then the outcome is unknown.
    endings: list[Callable[[bool], None]] = field(default_factory=list)

    async def fetch(self, query: Query, params: Params = ()) -> list[TupleRow]:
        return await self.connection.fetch(query, params)

    async def fetch_all(self, row: Callable[..., T], query: LiteralString, params: Params = ()) -> list[T]:
        """The rows of a statement as this type, whose field names replace `{columns}` in the statement."""
        return [row(*values) for values in await self.fetch(fill(query, columns=names_of(row)), params)]

    async def fetch_first(self, row: Callable[..., T], query: LiteralString, params: Params = ()) -> T | None:
        return next(iter(await self.fetch_all(row, query, params)), None)

    async def execute(self, query: Query, params: Params = ()) -> int:
        return await self.connection.change(query, params)

    async def set_lock_timeout(self, duration: str) -> None:
        """Set how long a statement waits for a lock, such as `5s`, until the end of the transaction."""
        await self.execute("SELECT set_config('lock_timeout', %s, true)", (duration,))

    def end(self, *, is_committed: bool) -> None:
        for ending in self.endings:
            ending(is_committed)


class Database:
    def __init__(
        self,
        url: str,
        *,
        pool_max: int = 10,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
        lock_timeout_ms: int = LOCK_TIMEOUT_MS,
        checkout_s_max: float = inf,
    ) -> None:
        """`checkout_s_max` is how long a caller may keep a connection before it is closed."""
        self.url = url
        # Called after the commit for each queue in `Tx.touched`; a process that wakes workers sets it.
        self.after_commit: Callable[[str, UUID], None] | None = None
        self.clock = DatabaseClock()
        # Whether organizations are on several nodes (Citus); known when the first recording connection is open.
        self.is_cluster = False
        self._checkout_s_max = checkout_s_max
        self._statement_timeout_ms = statement_timeout_ms
        self._connect_arguments = db_session.arguments(
            url,
            statement_timeout=statement_timeout_ms,
            lock_timeout=lock_timeout_ms,
            idle_in_transaction_session_timeout=IDLE_IN_TRANSACTION_MS,
        )
        unanswered_ms_max = (statement_timeout_ms or STATEMENT_TIMEOUT_MS) + UNANSWERED_MARGIN_MS
        self._connect_arguments |= {"autocommit": True, "tcp_user_timeout": unanswered_ms_max}
        self._pool = Pool(self.dial, connections_max=pool_max)
        self._reserve = min(RESERVED_FOR_WRITES, pool_max - 1)
        self._recording = Pool(partial(self.dial, for_recording=True), connections_max=RECORDING_MAX)
        self._looking_up = Pool(partial(self.dial, for_recording=True), connections_max=LOOKING_UP_MAX + URGENT_MAX)

    async def open(self) -> None:
        """Open a first connection; if the database is not reachable, later callers open theirs."""
        with suppress(*CONNECTION_ERRORS):
            await self._pool.open()

    async def close(self) -> None:
        self._pool.close()
        self._recording.close()
        self._looking_up.close()

    def pool_use(self) -> dict[str, float]:
        return self._pool.use()

    async def dial(self, *, for_recording: bool = False) -> Connection:
        """A new connection outside the pools, for a long-lived use such as a listener."""
        connection = await Connection.connect(self.url, **self._connect_arguments)
        arrays.register(connection.adapters)
        # The driver would deallocate all prepared statements, ours too, when a savepoint is rolled back.
        connection.prepare_threshold = None
        connection.make_ready()
        try:
            with _lent(connection, monotonic() + db_session.CONNECT_TIMEOUT_S):
                await db_session.pin(connection)
                if for_recording:
                    [(_, planning)] = await connection.fetch(db_session.FOR_RECORDING)
                    self.is_cluster = planning == db_session.PLANNED_ON_A_CLUSTER
        except BaseException:
            connection.hang_up()
            raise
        return connection

    def connection(self, *, until: float = inf, reserve: int = 0) -> AbstractAsyncContextManager[Connection]:
        """An autocommit connection; `until` is its deadline on the monotonic clock."""
        return self._borrowed(self._pool, until, reserve=reserve)

    def recording(self) -> AbstractAsyncContextManager[Connection]:
        """A connection for the hot path of recording: each statement is planned once, never scans a table, and is a
        transaction."""
        return self._borrowed(self._recording, inf)

    @asynccontextmanager
    async def looking_up(self, *, is_urgent: bool = False) -> AsyncIterator[Tx]:
        """Like `recording`, for reads by key. It has its own pool, so that reads and recording never wait for each
        other; one of its connections is only for urgent reads. The caller sets the deadline."""
        reserve = 0 if is_urgent else URGENT_MAX
        async with self._borrowed(self._looking_up, inf, reserve=reserve) as connection:
            yield Tx(connection, truncate_to_milliseconds(self.clock.about_now()))

    @asynccontextmanager
    async def _borrowed(self, pool: Pool, until: float, *, reserve: int = 0) -> AsyncIterator[Connection]:
        until = min(until, monotonic() + self._checkout_s_max)
        connection = await pool.take(min(until, monotonic() + POOL_WAIT_S), reserve=reserve, open_deadline=until)
        try:
            with _lent(connection, until):
                yield connection
        except ReadOnlySqlTransaction:
            # With several hosts in the address, a new connection leads to the one that accepts writes.
            connection.hang_up()
            raise
        finally:
            pool.put_back(connection)

    @asynccontextmanager
    async def transaction(self, *, until: float = inf, statement_timeout_ms: int | None = None) -> AsyncIterator[Tx]:
        """`statement_timeout_ms` replaces the usual limit if it is shorter."""
        begin = b"BEGIN; SELECT now()"
        if statement_timeout_ms is not None and not 0 < self._statement_timeout_ms <= statement_timeout_ms:
            begin = b"BEGIN; SET LOCAL statement_timeout = %d; SELECT now()" % statement_timeout_ms
        async with self._begun(begin, until) as tx:
            yield tx

    @asynccontextmanager
    async def snapshot(self, *, until: float = inf) -> AsyncIterator[Tx]:
        """For reads that must be consistent: all statements see the database as it is at the first statement."""
        async with self._begun(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT now()", until) as tx:
            yield tx

    @asynccontextmanager
    async def _begun(self, begin: bytes, until: float) -> AsyncIterator[Tx]:
        async with self.connection(until=until) as connection:
            queried_at = monotonic()
            begun = await connection.run_simple(begin)
            now = datetime.fromisoformat((begun.get_value(0, 0) or b"").decode())
            self.clock.set(now, queried_at=queried_at)
            tx = Tx(connection, truncate_to_milliseconds(now))
            try:
                yield tx
            except BaseException:
                with suppress(*CONNECTION_ERRORS):
                    if connection.pgconn.transaction_status in _OPEN:
                        await connection.run_simple(b"ROLLBACK")
                tx.end(is_committed=False)
                raise
            ended = await connection.run_simple(b"COMMIT")
            if ended.command_status != b"COMMIT":
                tx.end(is_committed=False)
                raise InFailedSqlTransaction("a statement of the transaction had failed; nothing was written")
        tx.end(is_committed=True)
        self.notify_committed(tx.touched)

    def notify_committed(self, touched: Iterable[tuple[str, UUID]]) -> None:
        """Report that these queues have new rows; for a caller that commits without a `Tx`."""
        if self.after_commit is not None:
            for queue, organization_id in touched:
                self.after_commit(queue, organization_id)

    @asynccontextmanager
    async def reading(self, *, until: float = inf) -> AsyncIterator[Tx]:
        """A connection for reads: every statement sees the newest commit. `now` is close to the database's clock."""
        async with self.connection(until=until, reserve=self._reserve) as connection:
            yield Tx(connection, truncate_to_milliseconds(self.clock.about_now()))


@contextmanager
def _lent(connection: Connection, until: float) -> Iterator[None]:
    """Close the connection at the deadline, unless the block has ended before."""
    if until == inf:
        yield
        return
    timer = asyncio.get_running_loop().call_later(until - monotonic(), connection.drop_connection)
    try:
        yield
    finally:
        timer.cancel()
