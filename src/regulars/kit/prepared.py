"""Prepared statements without a cursor: bytes go in and bytes come out.

A cursor of the driver converts each value through its adapters and waits through a generator, which for a short
statement costs more than the statement. A connection that runs the same few statements all day uses libpq more
directly: the driver opens it, and from then on the event loop's own reader collects the answers.

A server that dies may leave its last words and the end of the connection on the socket together. The loop (libuv) then
tells once that there is something, and not again: so the reader reads until nothing is left. And whoever borrows the
connection says until when: a server that does not answer by then has lost it.
"""

import asyncio
import select
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf

import psycopg
from psycopg import AsyncConnection
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg.rows import TupleRow

# What a connection has sent once it keeps room for: one that sent more than this is better closed than kept idle.
KEPT_BYTES_MAX = 4 << 20
_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)


class PreparedConnection:
    """One connection, one statement at a time."""

    def __init__(self, connection: AsyncConnection[TupleRow]) -> None:
        """Take over an idle connection; nobody else may use it any more."""
        # Held so that it lives as long as this does: the driver closes a connection that nobody holds.
        self._connection = connection
        self._pgconn = connection.pgconn
        self._loop = asyncio.get_running_loop()
        self._socket = self._pgconn.socket
        self._unread = select.poll()
        self._unread.register(self._socket, select.POLLIN)
        self._answered: asyncio.Future[PGresult] | None = None
        self._result: PGresult | None = None
        self.is_closed = False
        self.is_swollen = False
        self._loop.add_reader(self._socket, self._on_readable)

    async def prepare(self, statements: Mapping[bytes, str]) -> None:
        """Prepare statements under their names; parameters are `$1`, `$2`, … and always travel in binary."""
        for name, text in statements.items():
            self._pgconn.send_prepare(name, text.encode())
            await self._wait()

    async def run(self, name: bytes, parameters: Sequence[bytes | None]) -> PGresult:
        """Run a prepared statement; its result is in binary too. Raises what a cursor would raise."""
        if sum([len(value) for value in parameters if value is not None]) > KEPT_BYTES_MAX:
            self.is_swollen = True
        self._pgconn.send_query_prepared(name, parameters, [Format.BINARY] * len(parameters), Format.BINARY)
        return await self._wait()

    async def fetch_row(self, name: bytes, parameters: Sequence[bytes | None]) -> list[bytes]:
        """The values of the one row that the statement gives, null as no bytes."""
        result = await self.run(name, parameters)
        return [result.get_value(0, column) or b"" for column in range(result.nfields)]

    @contextmanager
    def lent(self, seconds: float) -> Iterator[None]:
        """For statements that must be done by then; otherwise the connection is closed, and whoever waits hears it."""
        if seconds == inf:
            yield
            return
        late = psycopg.OperationalError("the server did not answer in time")
        timer = self._loop.call_later(seconds, self._fail, late)
        try:
            yield
        finally:
            timer.cancel()

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._pgconn.finish()

    async def _wait(self) -> PGresult:
        self._answered = self._loop.create_future()
        self._send_rest()
        try:
            result = await self._answered
        except BaseException:
            # The connection is lost, or whoever asked is gone and the answer to come would be taken for the next one's.
            self.close()
            raise
        if result.status in _FAILED:
            raise error_from_result(result)
        return result

    def _send_rest(self) -> None:
        """Write what the socket takes, and the rest when it takes more."""
        try:
            is_unsent = self._pgconn.flush()
        except psycopg.Error as error:
            self._fail(error)
            return
        if is_unsent:
            self._loop.add_writer(self._socket, self._on_writable)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._socket)
        self._send_rest()

    def _on_readable(self) -> None:
        try:
            while True:
                self._pgconn.consume_input()
                self._collect()
                if self.is_closed or not self._unread.poll(0):
                    return
        except psycopg.Error as error:
            self._fail(error)

    def _collect(self) -> None:
        while not self._pgconn.is_busy():
            result = self._pgconn.get_result()
            if result is None:
                self._finish()
                return
            self._result = result

    def _finish(self) -> None:
        """Nothing more will come for this statement."""
        result, self._result = self._result, None
        if self._pgconn.status == ConnStatus.BAD:
            # The server said goodbye, and libpq has closed the socket: the loop must forget its number at once.
            self.close()
        if self._answered is not None and not self._answered.done() and result is not None:
            self._answered.set_result(result)

    def _fail(self, error: psycopg.Error) -> None:
        self.close()
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(error)
