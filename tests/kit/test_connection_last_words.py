"""A server that says something after its answer, or ends then."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from regulars.kit.arrays import read_bigint
from regulars.kit.connection import Prepared
from regulars.kit.db import Database

pytestmark = pytest.mark.anyio

LENGTH = Prepared(b"length", "SELECT length($1::text)::bigint")
READY = b"Z\x00\x00\x00\x05I"
# Longer than what the driver reads at once, so that some of it is still on the socket when the answer is whole.
LONG = b"x" * 60_000


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
    # A test that runs out of time within a callback reports it only to the loop.
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    async with await asyncio.start_server(between.join, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        opened = await Database(make_conninfo(database_url, host=host, port=port)).dial()
        yield opened
        opened.close_now()
        await between.end()
    assert not unhandled


async def test_what_a_server_says_after_the_end_changes_nothing(database_url):
    between = Between(database_url)
    async with dialled_through(between, database_url) as connection:
        await connection.run(LENGTH, [b"abc"])
        between.last_words = said(b"N", b"WARNING")
        result = await connection.run(LENGTH, [b"abc"])
        assert read_bigint(result.get_value(0, 0)) == 3
        assert not between.last_words
        result = await connection.run(LENGTH, [b"ab"])
        assert read_bigint(result.get_value(0, 0)) == 2


async def test_a_server_that_ends_right_after_the_commit_has_committed(database_url):
    between = Between(database_url)
    async with dialled_through(between, database_url) as connection:
        await connection.run(LENGTH, [b"abc"])
        between.last_words, between.is_end = said(b"E", b"FATAL"), True
        result = await connection.run(LENGTH, [b"abc"])
        assert read_bigint(result.get_value(0, 0)) == 3
        assert not connection.is_idle()
