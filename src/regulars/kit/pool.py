"""A connection pool: last in, first out, with a deadline for each caller.

The pool has no background task. A caller whose turn it is and that finds no idle connection opens one itself, and
retries until its deadline while the database is unreachable. A caller can leave a number of connections to other
callers (`reserve`), so that slow reads never take the last connection from the writes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final, NamedTuple

import psycopg

from regulars.kit.clock import monotonic
from regulars.kit.connection import Connection

# The pause before another attempt to connect.
RECONNECT_S: Final = 0.1


class PoolTimeout(psycopg.OperationalError):
    """No connection became free in time."""


class _Waiter(NamedTuple):
    # A future that is done when the waiter may have a connection.
    granted: "asyncio.Future[None]"
    reserve: int


class Pool:
    def __init__(self, dial: Callable[[], Awaitable[Connection]], *, connections_max: int) -> None:
        self._dial = dial
        self._connections_max = connections_max
        self._idle: list[Connection] = []
        self._waiting: list[_Waiter] = []
        self._lent = 0
        self._is_closed = False

    def use(self) -> dict[str, float]:
        return {"open": self._lent + len(self._idle), "idle": len(self._idle), "waiting": len(self._waiting)}

    async def open(self) -> None:
        """Open one connection, without a retry."""
        self._idle.append(await self._dial())

    async def take(self, until: float, *, reserve: int = 0, open_deadline: float = inf) -> Connection:
        """Borrow a live connection that is in no transaction; wait for one until `until`, and leave `reserve`
        connections to other callers.

        An attempt to connect that is under way at `until` may go on until `open_deadline`: the first of several hosts
        may not respond, and the next one may.
        """
        if self._lent < self._connections_max - reserve:
            self._lent += 1
        else:
            await self._wait_for_turn(until, reserve)
        try:
            while self._idle:
                connection = self._idle.pop()
                if connection.is_idle():
                    return connection
                connection.close_now()
            return await self._connect_until(until, open_deadline)
        except BaseException:
            self._release()
            raise

    def put_back(self, connection: Connection) -> None:
        if connection.closed:
            # After a restart of PostgreSQL all idle connections are dead too: close them, so that no other caller gets
            # an error.
            self._close_idle()
        elif self._is_closed or connection.has_large_buffer or not connection.is_idle():
            connection.close_now()
        else:
            self._idle.append(connection)
        self._release()

    def close(self) -> None:
        """Close idle connections now, and the others when they are put back."""
        self._is_closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close_now()

    async def _wait_for_turn(self, until: float, reserve: int) -> None:
        waiter = _Waiter(asyncio.get_running_loop().create_future(), reserve)
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(max(0.0, until - monotonic())):
                await waiter.granted
        except BaseException as error:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif waiter.granted.done() and not waiter.granted.cancelled():
                self._release()
            if isinstance(error, TimeoutError):
                raise PoolTimeout("no connection became free in time") from None
            raise

    def _release(self) -> None:
        """Give up the caller's place in the pool to the first waiter whose `reserve` allows it.

        A waiter that was just cancelled stays in the list until its task has run. It must be skipped, because it would
        not take the connection, which would then be lost to the pool.
        """
        self._lent -= 1
        for waiter in self._waiting:
            if self._lent < self._connections_max - waiter.reserve and not waiter.granted.done():
                self._waiting.remove(waiter)
                self._lent += 1
                waiter.granted.set_result(None)
                return

    async def _connect_until(self, until: float, open_deadline: float) -> Connection:
        while True:
            try:
                async with asyncio.timeout(None if open_deadline == inf else open_deadline - monotonic()):
                    return await self._dial()
            except TimeoutError:
                raise PoolTimeout("no connection could be made in time") from None
            except psycopg.OperationalError:
                if monotonic() + RECONNECT_S >= until:
                    raise
            await asyncio.sleep(RECONNECT_S)
