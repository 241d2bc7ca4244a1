"""A connection that runs statements without a cursor, and is the driver's own for everything else.

A cursor of the driver makes an object per statement, looks its types up and waits through a generator, which for a
short statement costs more than the statement. Here the event loop's own reader collects the answer, and a statement
that comes again is prepared, so that the server need not read it again. Values and rows still pass through the driver's
adapters (`fetch`, `change`), unless their bytes are finished already (`run`).

A server that dies may leave its last words and the end of the connection on the socket together. The loop (libuv) then
tells once that there is something, and not again: so the reader reads until nothing is left.
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

# What a connection has sent once it keeps room for: one that sent more than this is better closed than kept idle.
KEPT_BYTES_MAX: Final = 4 << 20
# Texts that are put together from parts, such as filters of lists, may be many.
STATEMENTS_MAX: Final = 400
TEXTS_READ_MAX: Final = 4_096
_FAILED: Final = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)
# The server forgot the statement, or a change of a table changed what it gives.
_FORGOTTEN: Final = (InvalidSqlStatementName, FeatureNotSupported)
_PLACE = re.compile(r"%(?:\((\w+)\)s|s|%)")


class Prepared(NamedTuple):
    """A statement for finished bytes: its places are `$1`, `$2`, … and always travel in binary."""

    name: bytes
    text: str


class Connection(AsyncConnection[TupleRow]):
    """One statement at a time."""

    _is_watched = False
    _named = 0
    _answered: "asyncio.Future[PGresult] | None" = None
    _result: PGresult | None = None
    is_swollen = False

    def make_ready(self) -> None:
        """Once, after it was dialled."""
        self._loop = asyncio.get_running_loop()
        # Its number is remembered: when libpq has closed it, the loop must still be told to forget it.
        self._socket = self.pgconn.socket
        self._unread = select.poll()
        self._unread.register(self._socket, select.POLLIN)
        self._adapting = Transformer(self)
        # By text and the types of its values: how often it was seen, or the name it is prepared under.
        self._statements: dict[tuple[str, tuple[int, ...]], bytes | None] = {}
        self._own: dict[bytes, bytes] = {}

    async def fetch(self, query: Query, params: Params = ()) -> list[TupleRow]:
        """The rows of a statement; its places are written `%s` or `%(name)s`, as the driver has them."""
        result = await self._ask(query, params)
        self._adapting.set_pgresult(result)
        rows = self._adapting.load_rows(0, result.ntuples, tuple)
        self._adapting.set_pgresult(None)
        return rows

    async def change(self, query: Query, params: Params = ()) -> int:
        """How many rows a statement touched."""
        return (await self._ask(query, params)).command_tuples or 0

    async def say(self, text: bytes) -> PGresult:
        """Statements without values, one after the other in one message; gives the last result, as text."""
        self.pgconn.send_query(text)
        return await self._wait()

    async def run(self, statement: Prepared, parameters: Sequence[bytes | None]) -> PGresult:
        """Run a statement of one's own on finished bytes; its result is in binary too."""
        try:
            return await self._run(statement, parameters)
        except _FORGOTTEN:
            if self._own.pop(statement.name, None) is None or self._is_in_transaction():
                raise
            return await self._run(statement, parameters)

    async def _run(self, statement: Prepared, parameters: Sequence[bytes | None]) -> PGresult:
        name = self._own.get(statement.name)
        if name is None:
            name = self._own[statement.name] = await self._prepare(statement.text)
        self._weigh(parameters)
        self.pgconn.send_query_prepared(name, parameters, [Format.BINARY] * len(parameters), Format.BINARY)
        return await self._wait()

    async def fetch_row(self, statement: Prepared, parameters: Sequence[bytes | None]) -> list[bytes]:
        """The values of the one row that such a statement gives, null as no bytes."""
        result = await self.run(statement, parameters)
        return [result.get_value(0, column) or b"" for column in range(result.nfields)]

    def is_idle(self) -> bool:
        """Whether it can be lent again: alive, as its socket tells without a question, and in no transaction."""
        try:
            if self._is_watched:
                self._on_readable()
            else:
                while self._unread.poll(0):
                    self.pgconn.consume_input()
            return self.pgconn.transaction_status == TransactionStatus.IDLE
        except psycopg.OperationalError:
            return False

    def cut_off(self) -> None:
        """Lose the connection now: whoever waits on it hears that, by our way of waiting or by the driver's."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.pgconn.socket)) as shared:
            shared.shutdown(socket.SHUT_RDWR)
        if self._answered is not None and not self._answered.done():
            self._fail(psycopg.OperationalError("the server did not answer in time"))

    def hang_up(self) -> None:
        """Close it without waiting for anything."""
        self._unwatch()
        self.pgconn.finish()

    async def close(self) -> None:
        self._unwatch()
        await super().close()

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:  # noqa: ASYNC109  # the driver's own signature
        """The driver's own way of waiting, for what has no way here: copying, notifications, savepoints."""
        self._unwatch()
        return await super().wait(gen, interval, timeout)

    async def _ask(self, query: Query, params: Params) -> PGresult:
        statement = _read(query if isinstance(query, str) else query.as_string(self))
        values = self._adapting.dump_sequence(statement.order(params), statement.formats)
        types = tuple(self._adapting.types or ())
        key = (statement.text, types)
        self._weigh(values)
        try:
            return await self._send(key, values, types)
        except _FORGOTTEN:
            if self._statements.pop(key, None) is None or self._is_in_transaction():
                raise
            return await self._send(key, values, types)

    async def _send(self, key: tuple[str, tuple[int, ...]], values: Sequence[Any], types: tuple[int, ...]) -> PGresult:
        formats = self._adapting.formats
        if key not in self._statements:
            # The first time it goes as it is; whether it comes again is not known.
            if len(self._statements) < STATEMENTS_MAX:
                self._statements[key] = None
            self.pgconn.send_query_params(key[0].encode(), values, types, formats, Format.TEXT)
            return await self._wait()
        name = self._statements[key]
        if name is None:
            name = self._statements[key] = await self._prepare(key[0], types)
        self.pgconn.send_query_prepared(name, values, formats, Format.TEXT)
        return await self._wait()

    def _weigh(self, values: Sequence[Buffer | None]) -> None:
        if sum([len(value) for value in values if value is not None]) > KEPT_BYTES_MAX:
            self.is_swollen = True

    def _is_in_transaction(self) -> bool:
        return self.pgconn.transaction_status != TransactionStatus.IDLE

    async def _prepare(self, text: str, types: Sequence[int] = ()) -> bytes:
        """Under a name that was never used here: the old one may still be taken by a plan that no longer fits."""
        self._named += 1
        name = b"s%d" % self._named
        self.pgconn.send_prepare(name, text.encode(), types)
        await self._wait()
        return name

    async def _wait(self) -> PGresult:
        self._answered = self._loop.create_future()
        if not self._is_watched:
            self._is_watched = True
            self._loop.add_reader(self._socket, self._on_readable)
        self._send_rest()
        try:
            result = await self._answered
            self._answered = None
        except BaseException:
            # The connection is lost, or whoever asked is gone and the answer to come would be taken for the next one's.
            self.hang_up()
            raise
        if result.status in _FAILED:
            raise error_from_result(result, encoding="utf-8")
        return result

    def _send_rest(self) -> None:
        """Write what the socket takes, and the rest when it takes more."""
        try:
            is_unsent = self.pgconn.flush()
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
                self.pgconn.consume_input()
                self._collect()
                if not self._is_watched or not self._unread.poll(0):
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
        """Nothing more will come for this statement."""
        result, self._result = self._result, None
        if self.pgconn.status == ConnStatus.BAD:
            # The server said goodbye, and libpq has closed the socket: the loop must forget its number at once.
            self.hang_up()
        if self._answered is None or self._answered.done():
            return
        if result is not None:
            self._answered.set_result(result)
        elif self.pgconn.status == ConnStatus.BAD:
            self._answered.set_exception(psycopg.OperationalError("the connection was lost"))

    def _fail(self, error: psycopg.Error) -> None:
        self.hang_up()
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(error)

    def _unwatch(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)


class _Statement(NamedTuple):
    """A text as the server takes it, and how to put values in the order of its places."""

    text: str
    order: Callable[[Params], Sequence[Any]]
    formats: list[PyFormat]


@lru_cache(TEXTS_READ_MAX)
def _read(query: str) -> _Statement:
    """Number the places: each `%s` is one, and all of one name are one."""
    names: list[str] = []
    count = 0

    def number(place: "re.Match[str]") -> str:
        nonlocal count
        if place[0] == "%%":
            return "%"
        if place[1] is None:
            count += 1
            return f"${count}"
        if place[1] not in names:
            names.append(place[1])
        return f"${names.index(place[1]) + 1}"

    text = _PLACE.sub(number, query)
    if names:
        order = itemgetter(*names) if len(names) > 1 else lambda params: (params[names[0]],)
        return _Statement(text, order, [PyFormat.AUTO] * len(names))

    def check_count(params: Params) -> Sequence[Any]:
        # The driver's C code reads past the end of the formats when there are more values than places.
        if len(params) != count and count:
            raise psycopg.ProgrammingError(f"the statement has {count} places, but got {len(params)} values")
        return list(params) if count else ()

    return _Statement(text, check_count, [PyFormat.AUTO] * count)
