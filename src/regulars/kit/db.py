"""The database: a pool that heals itself, and transactions that know their time.

All statements run in READ COMMITTED with UTC as the session's time zone. The transaction's own time is the only clock
that decides anything (`Tx.now`); SQL texts never store `now()` themselves.
"""

import select
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import Composed
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from regulars.kit import arrays
from regulars.kit.clock import monotonic, truncate_to_milliseconds

CONNECT_TIMEOUT_S = 5
POOL_WAIT_S = 5.0
# The pool doubles its waits between attempts and would otherwise take as long again to come back as the database took.
RECONNECT_S = 5.0
# A network that goes silent is noticed after some twelve seconds instead of the system's quarter of an hour.
KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
UNANSWERED_SLACK_MS = 5_000
STATEMENT_TIMEOUT_MS = 30_000
LOCK_TIMEOUT_MS = 500

Query = LiteralString | Composed
Params = Sequence[Any] | Mapping[str, Any]

CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)


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
    ) -> None:
        self.url = url
        # Called for each queue that a transaction touched, once it is committed; whoever has a worker to wake sets it.
        self.after_commit: Callable[[str, UUID], None] | None = None
        self._options = (
            f"-c timezone=UTC -c statement_timeout={statement_timeout_ms} -c lock_timeout={lock_timeout_ms}"
            " -c idle_in_transaction_session_timeout=60000 -c jit=off"
        )
        self._unanswered_ms_max = (statement_timeout_ms or STATEMENT_TIMEOUT_MS) + UNANSWERED_SLACK_MS
        self.pool: AsyncConnectionPool[AsyncConnection[TupleRow]] = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=pool_max,
            timeout=POOL_WAIT_S,
            reconnect_timeout=RECONNECT_S,
            kwargs=self.connect_arguments(),
            configure=_configure,
            open=False,
            name="regulars",
        )

    def connect_arguments(self) -> dict[str, Any]:
        return {
            "autocommit": True,
            "connect_timeout": CONNECT_TIMEOUT_S,
            "options": self._options,
            "tcp_user_timeout": self._unanswered_ms_max,
            **KEEPALIVE,
        }

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
        connection = await AsyncConnection.connect(self.url, **self.connect_arguments())
        await _configure(connection)
        return connection

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """An autocommit connection of the pool."""
        connection = await self._live_connection()
        try:
            async with connection:
                yield connection
        finally:
            await self.pool.putconn(connection)

    async def _live_connection(self) -> AsyncConnection[TupleRow]:
        """One that the server has not ended: after a restart of PostgreSQL all idle ones are dead, and nobody pays."""
        deadline = monotonic() + POOL_WAIT_S
        while True:
            connection = await self.pool.getconn(deadline - monotonic())
            if not _was_ended(connection):
                return connection
            # The pool sees that it is closed, forgets it and dials another.
            await self.pool.putconn(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        async with self.connection() as connection, connection.transaction():
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
    async def reading(self) -> AsyncIterator[Tx]:
        """A connection for reads: every statement sees the newest commit. `now` is the process's own clock."""
        async with self.connection() as connection:
            yield Tx(connection, truncate_to_milliseconds(datetime.now(UTC)))


def _was_ended(connection: AsyncConnection[TupleRow]) -> bool:
    """Whether the server hung up on an idle connection; its socket tells without a question to the server."""
    socket = select.poll()
    try:
        socket.register(connection.fileno(), select.POLLIN)
        # A notice or a word of goodbye may come first; what follows it is seen when that is read.
        while socket.poll(0):
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return False


async def _configure(connection: AsyncConnection[TupleRow]) -> None:
    arrays.register(connection.adapters)
