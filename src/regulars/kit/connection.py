"""A psycopg connection with a faster path for statements: no cursor, and prepared statements.

A cursor of psycopg (the driver) creates an object for each statement, looks up its types and waits through a generator,
which costs more than a short statement itself. Here a callback of the event loop reads the result, and a statement that
is run a second time is prepared, so that the server parses it once. `fetch` and `change` convert values and rows with
the driver's adapters; `run` takes values that the caller has encoded. All other methods are the driver's.

When the server dies, its last message and the end of the connection may reach the socket together. The event loop
(libuv) then reports the socket as readable only once, so the callback reads until nothing is left.
"""

import asyncio
import os
import re
import select
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, LiteralString, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.abc import RV, Buffer, PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import TupleRow
from psycopg.sql import Composed

Query = LiteralString | Composed
Params = Sequence[Any] | Mapping[str, Any]

# libpq never shrinks its send buffer: a connection that sent more than this is closed instead of returned to the pool.
BUFFER_BYTES_MAX: Final = 4 << 20
# Statements that one connection prepares. The filters of lists compose many texts; those over the limit run unprepared.
STATEMENTS_MAX: Final = 400
PARSED_QUERIES_MAX: Final = 4_096
_FAILED: Final = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)
# The server has lost the prepared statement, or a changed table gives its result other columns.
_OUTDATED: Final = (InvalidSqlStatementName, FeatureNotSupported)
_PARAMETER = re.compile(r"%(?:\((\w+)\)s|s|%)")


class Prepared(NamedTuple):
    """A statement for values that are encoded already: its parameters are `$1`, `$2`, …, always in binary."""

    name: bytes
    text: str


class Connection(AsyncConnection[TupleRow]):
    """Runs one statement at a time."""

    _has_reader = False
    _prepared_count = 0
    _response: "asyncio.Future[PGresult] | None" = None
    _result: PGresult | None = None
    has_large_buffer = False

    def make_ready(self) -> None:
        """Set up the fast path; called once, after connecting."""
        self._loop = asyncio.get_running_loop()
        # The socket's number is stored, because the event loop must still remove it after libpq has closed the socket.
        self._socket = self.pgconn.socket
        self._poller = select.poll()
        self._poller.register(self._socket, select.POLLIN)
        self._adapter = Transformer(self)
        # The name of the prepared statement by its text and the types of its values; None after the first run.
        self._statements: dict[tuple[str, tuple[int, ...]], bytes | None] = {}
        # For statements of `run`: the name under which this connection prepared each, by `Prepared.name`.
        self._prepared_names: dict[bytes, bytes] = {}

    async def fetch(self, query: Query, params: Params = ()) -> list[TupleRow]:
        """Run a statement with parameters written `%s` or `%(name)s`, as in the driver; return its rows."""
        result = await self._execute(query, params)
        self._adapter.set_pgresult(result)
        rows = self._adapter.load_rows(0, result.ntuples, tuple)
        self._adapter.set_pgresult(None)
        return rows

    async def change(self, query: Query, params: Params = ()) -> int:
        """Run a statement; return the number of rows it changed."""
        return (await self._execute(query, params)).command_tuples or 0

    async def run_simple(self, text: bytes) -> PGresult:
        """Run statements without parameters in one message; return the last result, as text."""
        self.pgconn.send_query(text)
        return await self._wait()

    async def run(self, statement: Prepared, parameters: Sequence[bytes | None]) -> PGresult:
        """Run a statement on encoded values; its result is in PostgreSQL's binary format too."""
        try:
            return await self._run(statement, parameters)
        except _OUTDATED:
            if self._prepared_names.pop(statement.name, None) is None or self._is_in_transaction():
                raise
            return await self._run(statement, parameters)

    async def _run(self, statement: Prepared, parameters: Sequence[bytes | None]) -> PGresult:
        name = self._prepared_names.get(statement.name)
        if name is None:
            name = self._prepared_names[statement.name] = await self._prepare(statement.text)
        self._check_size(parameters)
        self.pgconn.send_query_prepared(name, parameters, [Format.BINARY] * len(parameters), Format.BINARY)
        return await self._wait()

    async def fetch_row(self, statement: Prepared, parameters: Sequence[bytes | None]) -> list[bytes]:
        """Run a statement on encoded values that returns one row; return its values, with null as empty bytes."""
        result = await self.run(statement, parameters)
        return [result.get_value(0, column) or b"" for column in range(result.nfields)]

    def is_idle(self) -> bool:
        """Whether the pool can reuse the connection: it is in no transaction, and its socket is open, which is checked
        without a query."""
        try:
            if self._has_reader:
                self._on_readable()
            else:
                while self._poller.poll(0):
                    self.pgconn.consume_input()
            return self.pgconn.transaction_status == TransactionStatus.IDLE
        except psycopg.OperationalError:
            return False

    def drop_connection(self) -> None:
        """Shut the socket down, so that a caller that waits on it gets a connection error at once."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.pgconn.socket)) as shared:
            shared.shutdown(socket.SHUT_RDWR)
        if self._response is not None and not self._response.done():
            self._fail(psycopg.OperationalError("the server did not answer in time"))

    def close_now(self) -> None:
        """Close the connection without waiting for the server."""
        self._remove_reader()
        self.pgconn.finish()

    async def close(self) -> None:
        self._remove_reader()
        await super().close()

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:  # noqa: ASYNC109  # the driver's own signature
        """Wait as the driver does, for what this class does not implement: COPY, notifications, savepoints."""
        self._remove_reader()
        return await super().wait(gen, interval, timeout)

    async def _execute(self, query: Query, params: Params) -> PGresult:
        statement = _parse_query(query if isinstance(query, str) else query.as_string(self))
        values = self._adapter.dump_sequence(statement.order_values(params), statement.formats)
        types = tuple(self._adapter.types or ())
        key = (statement.text, types)
        self._check_size(values)
        try:
            return await self._send(key, values, types)
        except _OUTDATED:
            if self._statements.pop(key, None) is None or self._is_in_transaction():
                raise
            return await self._send(key, values, types)

    async def _send(self, key: tuple[str, tuple[int, ...]], values: Sequence[Any], types: tuple[int, ...]) -> PGresult:
        formats = self._adapter.formats
        if key not in self._statements:
            # The first run is not prepared: it may be the only one.
            if len(self._statements) < STATEMENTS_MAX:
                self._statements[key] = None
            self.pgconn.send_query_params(key[0].encode(), values, types, formats, Format.TEXT)
            return await self._wait()
        name = self._statements[key]
        if name is None:
            name = self._statements[key] = await self._prepare(key[0], types)
        self.pgconn.send_query_prepared(name, values, formats, Format.TEXT)
        return await self._wait()

    def _check_size(self, values: Sequence[Buffer | None]) -> None:
        if sum([len(value) for value in values if value is not None]) > BUFFER_BYTES_MAX:
            self.has_large_buffer = True

    def _is_in_transaction(self) -> bool:
        return self.pgconn.transaction_status != TransactionStatus.IDLE

    async def _prepare(self, text: str, types: Sequence[int] = ()) -> bytes:
        """Prepare under a new name: the old name may still belong to an outdated plan."""
        self._prepared_count += 1
        name = b"s%d" % self._prepared_count
        self.pgconn.send_prepare(name, text.encode(), types)
        await self._wait()
        return name

    async def _wait(self) -> PGresult:
        self._response = self._loop.create_future()
        if not self._has_reader:
            self._has_reader = True
            self._loop.add_reader(self._socket, self._on_readable)
        self._flush_output()
        try:
            result = await self._response
            self._response = None
        except BaseException:
            # The connection is lost, or the caller was cancelled and its result would be taken for that of the next
            # statement.
            self.close_now()
            raise
        if result.status in _FAILED:
            raise error_from_result(result, encoding="utf-8")
        return result

    def _flush_output(self) -> None:
        """Write the bytes that the socket accepts now, and the remaining ones when it is writable again."""
        try:
            has_unsent_bytes = self.pgconn.flush()
        except psycopg.Error as error:
            self._fail(error)
            return
        if has_unsent_bytes:
            self._loop.add_writer(self._socket, self._on_writable)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._socket)
        self._flush_output()

    def _on_readable(self) -> None:
        try:
            while True:
                self.pgconn.consume_input()
                self._collect()
                if not self._has_reader or not self._poller.poll(0):
                    return
        except psycopg.Error as error:
            self._fail(error)

    def _collect(self) -> None:
        while not self.pgconn.is_busy():
            result = self.pgconn.get_result()
            if result is None:
                self._finish()
                return
            self._result = result

    def _finish(self) -> None:
        """Give the caller the last result of the statement."""
        result, self._result = self._result, None
        if self.pgconn.status == ConnStatus.BAD:
            # The server ended the connection and libpq closed the socket: remove it from the event loop at once.
            self.close_now()
        if self._response is None or self._response.done():
            return
        if result is not None:
            self._response.set_result(result)
        elif self.pgconn.status == ConnStatus.BAD:
            self._response.set_exception(psycopg.OperationalError("the connection was lost"))

    def _fail(self, error: psycopg.Error) -> None:
        self.close_now()
        if self._response is not None and not self._response.done():
            self._response.set_exception(error)

    def _remove_reader(self) -> None:
        if self._has_reader:
            self._has_reader = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)


class _Statement(NamedTuple):
    """An SQL text with parameters `$1`, `$2`, …, and the function that puts the caller's values in that order."""

    text: str
    order_values: Callable[[Params], Sequence[Any]]
    formats: list[PyFormat]


@lru_cache(PARSED_QUERIES_MAX)
def _parse_query(query: str) -> _Statement:
    """Number the parameters: each `%s` gets its own number, and each name of `%(name)s` gets one number."""
    names: list[str] = []
    count = 0

    def number(parameter: "re.Match[str]") -> str:
        nonlocal count
        if parameter[0] == "%%":
            return "%"
        if parameter[1] is None:
            count += 1
            return f"${count}"
        if parameter[1] not in names:
            names.append(parameter[1])
        return f"${names.index(parameter[1]) + 1}"

    text = _PARAMETER.sub(number, query)
    if names:
        order_values = itemgetter(*names) if len(names) > 1 else lambda params: (params[names[0]],)
        return _Statement(text, order_values, [PyFormat.AUTO] * len(names))

    def check_count(params: Params) -> Sequence[Any]:
        # The driver's C code reads past the end of the formats when there are more values than parameters.
        if len(params) != count and count:
            raise psycopg.ProgrammingError(f"the statement has {count} parameters, but got {len(params)} values")
        return list(params) if count else ()

    return _Statement(text, check_count, [PyFormat.AUTO] * count)
