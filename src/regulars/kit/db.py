"""Database access: pooled connections with a deadline, and transactions with a timestamp.

Transactions are READ COMMITTED unless they take a snapshot, and the session's time zone is UTC (`db_session.py`). The
timestamp of the transaction is the only clock for decisions (`Tx.now`); SQL texts never store `now()` themselves.

A caller borrows a connection until a deadline. Then the socket is closed, and a caller that still waits gets a
connection error, even when the database is stopped, unreachable or too busy to handle a request to cancel.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from math import inf
from typing import Any, LiteralString, TypeVar
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

# How long a caller waits for a free connection.
POOL_WAIT_S = 5.0
# TCP gives up when sent data is unacknowledged for this much longer than a statement may run.
UNANSWERED_MARGIN_MS = 5_000
STATEMENT_TIMEOUT_MS = 30_000
IDLE_IN_TRANSACTION_MS = 60_000
LOCK_TIMEOUT_MS = 500
# Connections of the pool that reads may not use, so that writes always find one.
RESERVED_FOR_WRITES = 2
# Connections for batches of sales: as many as are usually in flight.
RECORDING_MAX = 8
# Connections for reads by key, and one more only for reads that block a whole request, such as authentication.
KEY_READS_MAX = 2
URGENT_READS_MAX = 1

# Errors after which a retry may succeed.
CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError, ReadOnlySqlTransaction)
# Errors of a statement that wrote nothing, because of its values or a lock; the connection can be used again.
REFUSED_ERRORS = (psycopg.DataError, psycopg.IntegrityError, DeadlockDetected, LockNotAvailable)

_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


@dataclass(frozen=True, slots=True)
class Tx:
    """An open transaction, or for reads a connection without one, and the time that counts as now."""

    connection: Connection
    now: datetime
    # The work queues to which this transaction adds rows, each with its organization, for `Database.after_commit`.
    queues_to_wake: set[tuple[str, UUID]] = field(default_factory=set)
    # Called with True after the commit and with False after a rollback; not called if the connection was lost during
    # the commit, because then the outcome is unknown.
    end_callbacks: list[Callable[[bool], None]] = field(default_factory=list)

    async def fetch(self, query: Query, params: Params = ()) -> list[TupleRow]:
        return await self.connection.fetch(query, params)

    async def fetch_all(self, row: Callable[..., T], query: LiteralString, params: Params = ()) -> list[T]:
        """Return each row of the statement as a `row`, whose field names replace `{columns}` in the statement."""
        return [row(*values) for values in await self.fetch(fill(query, columns=names_of(row)), params)]

    async def fetch_first(self, row: Callable[..., T], query: LiteralString, params: Params = ()) -> T | None:
        return next(iter(await self.fetch_all(row, query, params)), None)

    async def fetch_column(self, query: Query, params: Params = ()) -> list[Any]:
        """Return the first column of each row."""
        return [values[0] for values in await self.fetch(query, params)]

    async def fetch_value(self, query: Query, params: Params = ()) -> Any | None:
        """Return the first column of the first row; None if there is no row."""
        return next(iter(await self.fetch_column(query, params)), None)

    async def fetch_map(self, query: Query, params: Params = ()) -> dict[Any, Any]:
        """Return the second column of each row by the first."""
        return dict(await self.fetch(query, params))

    async def fetch_count(self, query: Query, params: Params = ()) -> int:
        """Return the number that a statement such as `SELECT count(*)` counts."""
        return int(await self.fetch_value(query, params) or 0)

    async def execute(self, query: Query, params: Params = ()) -> int:
        return await self.connection.change(query, params)

    async def set_lock_timeout(self, duration: str) -> None:
        """Set how long a statement waits for a lock, such as `5s`, until the end of the transaction."""
        await self.execute("SELECT set_config('lock_timeout', %s, true)", (duration,))

    def end(self, *, is_committed: bool) -> None:
        for callback in self.end_callbacks:
            callback(is_committed)


class Database:
    def __init__(
        self,
        url: str,
        *,
        pool_max: int = 10,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
        lock_timeout_ms: int = LOCK_TIMEOUT_MS,
        idle_in_transaction_ms: int = IDLE_IN_TRANSACTION_MS,
        checkout_s_max: float = inf,
    ) -> None:
        """`checkout_s_max` is how long a caller may use a connection before it is closed."""
        self.url = url
        # Called after a commit for each queue in `Tx.queues_to_wake`; set by a process that notifies the workers.
        self.after_commit: Callable[[str, UUID], None] | None = None
        # The queues that need no further call for now, because their workers will be notified anyway.
        self.woken: AbstractSet[tuple[str, UUID]] = frozenset()
        self.clock = DatabaseClock()
        # Whether the database is a Citus cluster; known once the first connection for recording is open.
        self.is_cluster = False
        self._checkout_s_max = checkout_s_max
        self._statement_timeout_ms = statement_timeout_ms
        self._connect_arguments = db_session.arguments(
            url,
            statement_timeout=statement_timeout_ms,
            lock_timeout=lock_timeout_ms,
            idle_in_transaction_session_timeout=idle_in_transaction_ms,
        )
        unanswered_ms_max = (statement_timeout_ms or STATEMENT_TIMEOUT_MS) + UNANSWERED_MARGIN_MS
        self._connect_arguments |= {"autocommit": True, "tcp_user_timeout": unanswered_ms_max}
        self._pool = Pool(self.dial, connections_max=pool_max)
        self._reserve = min(RESERVED_FOR_WRITES, pool_max - 1)
        self._recording = Pool(partial(self.dial, for_recording=True), connections_max=RECORDING_MAX)
        self._key_reads = Pool(partial(self.dial, for_recording=True), connections_max=KEY_READS_MAX + URGENT_READS_MAX)

    async def open(self) -> None:
        """Open a first connection; if the database is not reachable, later callers open theirs."""
        with suppress(*CONNECTION_ERRORS):
            await self._pool.open()

    async def close(self) -> None:
        self._pool.close()
        self._recording.close()
        self._key_reads.close()

    def pool_use(self) -> dict[str, float]:
        return self._pool.use()

    async def dial(self, *, for_recording: bool = False) -> Connection:
        """Open a connection outside the pools, for a long-lived use such as LISTEN."""
        connection = await Connection.connect(self.url, **self._connect_arguments)
        arrays.register(connection.adapters)
        # With its own prepared statements, the driver would deallocate ours too when a savepoint is rolled back.
        connection.prepare_threshold = None
        connection.make_ready()
        try:
            with _close_at(connection, monotonic() + db_session.CONNECT_TIMEOUT_S):
                await db_session.set_schema_and_durability(connection)
                if for_recording:
                    [(_, planning)] = await connection.fetch(db_session.FOR_RECORDING)
                    self.is_cluster = planning == db_session.PLANNED_ON_A_CLUSTER
        except BaseException:
            connection.close_now()
            raise
        return connection

    def connection(self, *, until: float = inf, reserve: int = 0) -> AbstractAsyncContextManager[Connection]:
        """Borrow an autocommit connection until a deadline on the monotonic clock; leave `reserve` ones to others."""
        return self._borrow(self._pool, until, reserve=reserve)

    def recording(self) -> AbstractAsyncContextManager[Connection]:
        """Borrow an autocommit connection for recording sales: a statement is planned once and never scans a table."""
        return self._borrow(self._recording, inf)

    @asynccontextmanager
    async def reading_by_key(self, *, is_urgent: bool = False) -> AsyncIterator[Tx]:
        """Like `recording`, for reads by key. They have their own pool, so that reads and recording never wait for each
        other; one of its connections is only for urgent reads. The caller limits the time."""
        reserve = 0 if is_urgent else URGENT_READS_MAX
        async with self._borrow(self._key_reads, inf, reserve=reserve) as connection:
            yield Tx(connection, truncate_to_milliseconds(self.clock.estimate_now()))

    @asynccontextmanager
    async def _borrow(self, pool: Pool, until: float, *, reserve: int = 0) -> AsyncIterator[Connection]:
        until = min(until, monotonic() + self._checkout_s_max)
        connection = await pool.take(min(until, monotonic() + POOL_WAIT_S), reserve=reserve, open_deadline=until)
        try:
            with _close_at(connection, until):
                yield connection
        except ReadOnlySqlTransaction:
            # With several hosts in the database URL, a new connection finds the host that accepts writes.
            connection.close_now()
            raise
        finally:
            pool.put_back(connection)

    @asynccontextmanager
    async def transaction(self, *, until: float = inf, statement_timeout_ms: int | None = None) -> AsyncIterator[Tx]:
        """Begin a transaction; `statement_timeout_ms` replaces the usual limit of a statement if it is shorter."""
        begin = b"BEGIN; SELECT now()"
        if statement_timeout_ms is not None and not 0 < self._statement_timeout_ms <= statement_timeout_ms:
            begin = b"BEGIN; SET LOCAL statement_timeout = %d; SELECT now()" % statement_timeout_ms
        async with self._begin(begin, until) as tx:
            yield tx

    @asynccontextmanager
    async def dry_run(self) -> AsyncIterator[Tx]:
        """Begin a transaction that is always rolled back."""
        try:
            async with self.transaction() as tx:
                yield tx
                raise _RolledBackError
        except _RolledBackError:
            pass

    @asynccontextmanager
    async def snapshot(self, *, until: float = inf) -> AsyncIterator[Tx]:
        """Begin a read-only transaction whose statements all see the database as of the first statement."""
        async with self._begin(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT now()", until) as tx:
            yield tx

    @asynccontextmanager
    async def _begin(self, begin: bytes, until: float) -> AsyncIterator[Tx]:
        async with self.connection(until=until) as connection:
            queried_at = monotonic()
            result = await connection.run_simple(begin)
            now = datetime.fromisoformat((result.get_value(0, 0) or b"").decode())
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
            result = await connection.run_simple(b"COMMIT")
            if result.command_status != b"COMMIT":
                tx.end(is_committed=False)
                raise InFailedSqlTransaction("a statement of the transaction had failed; nothing was written")
        tx.end(is_committed=True)
        self.notify_committed(tx.queues_to_wake)

    def notify_committed(self, queues: Iterable[tuple[str, UUID]]) -> None:
        """Call `after_commit` for these queues; for a caller that commits without a `Tx`."""
        if self.after_commit is not None:
            for queue in queues:
                if queue not in self.woken:
                    self.after_commit(*queue)

    @asynccontextmanager
    async def reading(self, *, until: float = inf) -> AsyncIterator[Tx]:
        """Borrow a connection for reads: every statement sees the newest commit. `now` is an estimate."""
        async with self.connection(until=until, reserve=self._reserve) as connection:
            yield Tx(connection, truncate_to_milliseconds(self.clock.estimate_now()))


class _RolledBackError(Exception):
    """Rolls a dry run back."""


@contextmanager
def _close_at(connection: Connection, until: float) -> Iterator[None]:
    """Close the connection at the deadline, unless the block has ended before."""
    if until == inf:
        yield
        return
    timer = asyncio.get_running_loop().call_later(until - monotonic(), connection.drop_connection)
    try:
        yield
    finally:
        timer.cancel()
