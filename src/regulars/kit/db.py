"""The database: a pool that heals itself, and transactions that know their time.

All statements run in READ COMMITTED with UTC as the session's time zone (`connecting.py`). The transaction's own time
is the only clock that decides anything (`Tx.now`); SQL texts never store `now()` themselves.

A connection may be lent for a limited time. When that is over its socket is shut down: whoever waits on it then hears
that it is lost, also when the server is stopped, unreachable or busy and would not answer a request to cancel.
"""

import asyncio
import os
import select
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.rows import TupleRow
from psycopg.sql import Composed
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from regulars.kit import arrays, connecting
from regulars.kit.clock import monotonic, truncate_to_milliseconds

POOL_WAIT_S = 5.0
# The pool doubles its waits between attempts and would otherwise take as long again to come back as the database took.
RECONNECT_S = 5.0
UNANSWERED_SLACK_MS = 5_000
STATEMENT_TIMEOUT_MS = 30_000
IDLE_IN_TRANSACTION_MS = 60_000
LOCK_TIMEOUT_MS = 500

Query = LiteralString | Composed
Params = Sequence[Any] | Mapping[str, Any]

# What may be gone when somebody tries again.
CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, ReadOnlySqlTransaction)


@dataclass(frozen=True, slots=True)
class Tx:
    """One open transaction (or, for reads, one connection) and the moment it counts as."""

    connection: AsyncConnection[TupleRow]
    now: datetime
    # The queues that this transaction put rows into, each with the organization: told to `Database.after_commit`.
    touched: set[tuple[str, UUID]] = field(default_factory=set)

    async def fetch(self, query: Query, params: Params = ()) -> list[TupleRow]:
        cursor = await self.connection.execute(query, params)
        return await cursor.fetchall()

    async def execute(self, query: Query, params: Params = ()) -> int:
        cursor = await self.connection.execute(query, params)
        return cursor.rowcount


class Database:
    def __init__(
        self,
        url: str,
        *,
        pool_max: int = 10,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
        lock_timeout_ms: int = LOCK_TIMEOUT_MS,
        lent_s_max: float = inf,
    ) -> None:
        """`lent_s_max` is how long anyone may keep a connection before it is cut off."""
        self.url = url
        # Called for each queue that a transaction touched, once it is committed; whoever has a worker to wake sets it.
        self.after_commit: Callable[[str, UUID], None] | None = None
        self.lent_s_max = lent_s_max
        self._connect_arguments = connecting.arguments(
            url,
            statement_timeout=statement_timeout_ms,
            lock_timeout=lock_timeout_ms,
            idle_in_transaction_session_timeout=IDLE_IN_TRANSACTION_MS,
        )
        unanswered_ms_max = (statement_timeout_ms or STATEMENT_TIMEOUT_MS) + UNANSWERED_SLACK_MS
        self._connect_arguments |= {"autocommit": True, "tcp_user_timeout": unanswered_ms_max}
        self.pool: AsyncConnectionPool[AsyncConnection[TupleRow]] = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=pool_max,
            timeout=POOL_WAIT_S,
            reconnect_timeout=RECONNECT_S,
            kwargs=self._connect_arguments,
            configure=_configure,
            open=False,
            name="regulars",
        )

    async def open(self) -> None:
        await self.pool.open()

    async def close(self) -> None:
        await self.pool.close()

    def pool_use(self) -> dict[str, float]:
        stats = self.pool.get_stats()
        return {
            "open": stats.get("pool_size", 0),
            "idle": stats.get("pool_available", 0),
            "waiting": stats.get("requests_waiting", 0),
        }

    async def dial(self) -> AsyncConnection[TupleRow]:
        """A connection of its own, outside the pool, for a long-lived user such as a flusher."""
        connection = await AsyncConnection.connect(self.url, **self._connect_arguments)
        await _configure(connection)
        return connection

    @asynccontextmanager
    async def connection(self, *, until: float = inf) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """An autocommit connection of the pool, until a moment of the monotonic clock at most."""
        until = min(until, monotonic() + self.lent_s_max)
        connection = await self._live_connection(until)
        try:
            with cut_off(connection, until):
                async with connection:
                    yield connection
        except ReadOnlySqlTransaction:
            # An address with several hosts leads to the one that takes writes, when it is dialled again.
            await connection.close()
            raise
        finally:
            await self.pool.putconn(connection)

    async def _live_connection(self, until: float) -> AsyncConnection[TupleRow]:
        """One that the server has not ended: after a restart of PostgreSQL all idle ones are dead, and nobody pays."""
        until = min(until, monotonic() + POOL_WAIT_S)
        while True:
            connection = await self.pool.getconn(until - monotonic())
            if not _was_ended(connection):
                return connection
            # The pool sees that it is closed, forgets it and dials another.
            await self.pool.putconn(connection)

    @asynccontextmanager
    async def transaction(self, *, until: float = inf) -> AsyncIterator[Tx]:
        async with self.connection(until=until) as connection, connection.transaction():
            cursor = await connection.execute("SELECT now()")
            row = await cursor.fetchone()
            if row is None:
                raise psycopg.InterfaceError("the database did not tell the time")
            tx = Tx(connection, truncate_to_milliseconds(row[0]))
            yield tx
        self.tell_committed(tx.touched)

    def tell_committed(self, touched: Iterable[tuple[str, UUID]]) -> None:
        """For whoever commits without a `Tx`: these queues have new rows."""
        if self.after_commit is not None:
            for queue, organization_id in touched:
                self.after_commit(queue, organization_id)

    @asynccontextmanager
    async def reading(self, *, until: float = inf) -> AsyncIterator[Tx]:
        """A connection for reads: every statement sees the newest commit. `now` is the process's own clock."""
        async with self.connection(until=until) as connection:
            yield Tx(connection, truncate_to_milliseconds(datetime.now(UTC)))


@contextmanager
def cut_off(connection: AsyncConnection[TupleRow], until: float) -> Iterator[None]:
    """Let the connection go at that moment, whatever it is waiting for, unless the block has ended by then."""
    if until == inf:
        yield
        return
    timer = asyncio.get_running_loop().call_later(until - monotonic(), _shut, connection)
    try:
        yield
    finally:
        timer.cancel()


def _shut(connection: AsyncConnection[TupleRow]) -> None:
    """Shut the socket down and leave its number to the driver, which reads the end and closes it."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


def _was_ended(connection: AsyncConnection[TupleRow]) -> bool:
    """Whether the server hung up on an idle connection; its socket tells without a question to the server."""
    polled = select.poll()
    try:
        polled.register(connection.fileno(), select.POLLIN)
        # A notice or a word of goodbye may come first; what follows it is seen when that is read.
        while polled.poll(0):
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return False


async def _configure(connection: AsyncConnection[TupleRow]) -> None:
    arrays.register(connection.adapters)
    with cut_off(connection, monotonic() + connecting.CONNECT_TIMEOUT_S):
        await connecting.pin(connection)
