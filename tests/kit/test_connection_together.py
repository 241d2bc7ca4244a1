"""Several statements as one: one transaction, each result for its statement, and nothing when one of them fails."""

import asyncio
from contextlib import asynccontextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from regulars.kit.arrays import bigint, read_bigint
from regulars.kit.connection import Prepared
from regulars.kit.db import Database

pytestmark = pytest.mark.anyio

LENGTH = Prepared(b"length", "SELECT length($1::text)::bigint")
DIVIDE = Prepared(b"divide", "SELECT 1 / length($1::text)")
PUT = Prepared(b"put", "INSERT INTO things SELECT $1::bigint")
COUNT = Prepared(b"count", "SELECT count(*) FROM things")
NUMBER = Prepared(b"number", "SELECT pg_backend_pid()::bigint")
WAIT = Prepared(b"wait", "SELECT FROM pg_sleep(30)")
READY = b"Z\x00\x00\x00\x05I"
# Longer than what the driver reads at once, so that some of it is still on the socket when the answer is whole.
LONG = b"x" * 60_000


@pytest.fixture
async def connection(database):
    opened = await database.dial()
    await opened.change("CREATE TABLE things (number bigint PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
    yield opened
    opened.hang_up()


async def count(connection) -> int:
    [number] = await connection.fetch_row(COUNT, ())
    return read_bigint(number)


async def test_each_has_its_result_and_sees_what_those_before_it_did(connection):
    first, none, second = await connection.run_together([(LENGTH, [b"abc"]), (PUT, [bigint(1)]), (COUNT, ())])
    assert read_bigint(first.get_value(0, 0)) == 3
    assert none.ntuples == 0
    assert read_bigint(second.get_value(0, 0)) == 1
    assert connection.is_idle()
    assert await count(connection) == 1


async def test_when_one_fails_none_took_effect_and_the_connection_goes_on(connection):
    asked = [(PUT, [bigint(1)]), (DIVIDE, [b""]), (PUT, [bigint(2)])]
    with pytest.raises(psycopg.errors.DivisionByZero):
        await connection.run_together(asked)
    assert await count(connection) == 0
    await connection.run_together([(PUT, [bigint(1)])])
    assert await count(connection) == 1


async def test_a_commit_that_fails_is_a_failure(connection):
    with pytest.raises(psycopg.errors.UniqueViolation):
        await connection.run_together([(PUT, [bigint(1)]), (PUT, [bigint(1)])])
    assert await count(connection) == 0


async def test_many_large_ones_go_through(connection):
    text = b"x" * 100_000
    results = await connection.run_together([(LENGTH, [text])] * 100)
    assert [read_bigint(result.get_value(0, 0)) for result in results] == [100_000] * 100


async def test_statements_that_the_server_forgot_are_prepared_again(connection):
    for expected in range(1, 4):
        await connection.run_together([(LENGTH, [b"abc"]), (PUT, [bigint(expected)])])
        await connection.execute("DEALLOCATE ALL")
        assert await count(connection) == expected


async def test_whoever_gives_up_waiting_closes_it(connection):
    waiting = asyncio.create_task(connection.run_together([(PUT, [bigint(1)]), (WAIT, ()), (PUT, [bigint(2)])]))
    await asyncio.sleep(0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert connection.closed


async def test_a_server_that_goes_away_between_two_of_them_is_an_operational_error(database, connection):
    [number] = await connection.fetch_row(NUMBER, ())
    waiting = asyncio.create_task(connection.run_together([(PUT, [bigint(1)]), (WAIT, ()), (PUT, [bigint(2)])]))
    await asyncio.sleep(0.1)
    async with database.reading() as tx:
        await tx.fetch("SELECT pg_terminate_backend(%s)", (read_bigint(number),))
        with pytest.raises(psycopg.OperationalError):
            await waiting
        assert connection.closed
        assert await tx.fetch("SELECT count(*) FROM things") == [(0,)]


def said(kind: bytes, severity: bytes) -> bytes:
    """A message as a server sends it when it likes to."""
    fields = b"S%b\0V%b\0C57P01\0M%b\0\0" % (severity, severity, LONG)
    return kind + (len(fields) + 4).to_bytes(4, "big") + fields


class Between:
    """Stands between the driver and the server, and has last words once an answer is whole."""

    def __init__(self, database_url: str) -> None:
        self._to = conninfo_to_dict(database_url)
        self.last_words = b""
        self.is_end = False
        self._passing: list[asyncio.Task[None]] = []

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = str(self._to["host"]), self._to.get("port") or 5432
        is_path = host.startswith("/")
        opening = (
            asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}") if is_path else asyncio.open_connection(host, port)
        )
        from_server, to_server = await opening
        self._passing.append(asyncio.create_task(self._pass_on(reader, to_server)))
        self._passing.append(asyncio.create_task(self._pass_on(from_server, writer)))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while some := await reader.read(1 << 16):
                if not self.last_words or not some.endswith(READY):
                    writer.write(some)
                    continue
                writer.write(some + self.last_words)
                self.last_words = b""
                if self.is_end:
                    break
        finally:
            writer.close()

    async def end(self) -> None:
        for passing in self._passing:
            passing.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)


@asynccontextmanager
async def dialled_through(between, database_url):
    # A test that is out of time within a callback tells the loop, and nobody else.
    unheard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    async with await asyncio.start_server(between.join, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        opened = await Database(make_conninfo(database_url, host=host, port=port)).dial()
        yield opened
        opened.hang_up()
        await between.end()
    assert not unheard


async def test_what_a_server_says_after_the_end_changes_nothing(database_url):
    between = Between(database_url)
    async with dialled_through(between, database_url) as connection:
        await connection.run_together([(LENGTH, [b"abc"])])
        between.last_words = said(b"N", b"WARNING")
        [result] = await connection.run_together([(LENGTH, [b"abc"])])
        assert read_bigint(result.get_value(0, 0)) == 3
        assert not between.last_words
        [result] = await connection.run_together([(LENGTH, [b"ab"])])
        assert read_bigint(result.get_value(0, 0)) == 2


async def test_a_server_that_ends_right_after_the_commit_has_committed(database_url):
    between = Between(database_url)
    async with dialled_through(between, database_url) as connection:
        await connection.run_together([(LENGTH, [b"abc"])])
        between.last_words, between.is_end = said(b"E", b"FATAL"), True
        [result] = await connection.run_together([(LENGTH, [b"abc"])])
        assert read_bigint(result.get_value(0, 0)) == 3
        assert not connection.is_idle()
