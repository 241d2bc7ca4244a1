"""Statements without a cursor: right answers, the driver's own errors, and no answer that belongs to another."""

import asyncio

import psycopg
import pytest

from regulars.kit.arrays import Blobs, Texts, read_bigint
from regulars.kit.prepared import PreparedConnection

pytestmark = pytest.mark.anyio

STATEMENTS = {
    b"length": "SELECT length($1::text)::bigint, $1::text IS NULL",
    b"many": "SELECT n, n * n FROM unnest($1::bigint[]) AS n",
    b"slow": "SELECT 1 FROM pg_sleep(30)",
    b"sum": "SELECT sum(length(b))::bigint FROM unnest($1::bytea[]) AS b",
    b"echo": "SELECT b FROM unnest($1::bytea[]) AS b",
    b"divide": "SELECT 1 / length($1::text)",
    b"number": "SELECT pg_backend_pid()::bigint",
}


@pytest.fixture
async def connection(database):
    opened = PreparedConnection(await database.dial())
    await opened.prepare(STATEMENTS)
    yield opened
    opened.close()


async def kill(database, connection) -> None:
    [number] = await connection.fetch_row(b"number", ())
    async with database.reading() as tx:
        await tx.fetch("SELECT pg_terminate_backend(%s)", (read_bigint(number),))


async def test_values_go_in_and_come_out_as_bytes(connection):
    assert [read_bigint(value) for value in await connection.fetch_row(b"length", ["é😀".encode()])] == [2, 0]
    assert await connection.fetch_row(b"length", [None]) == [b"", b"\x01"]


async def test_a_statement_that_fails_raises_the_driver_s_error_and_the_next_one_runs(connection):
    with pytest.raises(psycopg.errors.DivisionByZero):
        await connection.run(b"divide", [b""])
    assert read_bigint((await connection.fetch_row(b"length", [b"abc"]))[0]) == 3
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        await connection.run(b"unknown", ())


async def test_a_statement_that_cannot_be_prepared_raises(connection):
    with pytest.raises(psycopg.errors.UndefinedTable):
        await connection.prepare({b"nothing": "SELECT FROM nothing"})


async def test_more_than_the_socket_takes_at_once_arrives_and_comes_back(connection):
    blobs = [bytes([number % 256]) * 100_000 for number in range(200)]
    [total] = await connection.fetch_row(b"sum", [Blobs(blobs).payload])
    assert read_bigint(total) == 20_000_000
    result = await connection.run(b"echo", [Blobs(blobs).payload])
    assert [result.get_value(row, 0) for row in range(result.ntuples)] == blobs


async def test_whoever_gives_up_waiting_closes_it_so_that_nobody_gets_the_wrong_answer(connection):
    waiting = asyncio.create_task(connection.run(b"slow", ()))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert connection.is_closed


async def test_a_connection_that_the_server_ends_while_it_works_is_an_operational_error(database, connection):
    [number] = await connection.fetch_row(b"number", ())
    waiting = asyncio.create_task(connection.run(b"slow", ()))
    await asyncio.sleep(0.05)
    async with database.reading() as tx:
        await tx.fetch("SELECT pg_terminate_backend(%s)", (read_bigint(number),))
    with pytest.raises(psycopg.OperationalError):
        await waiting
    assert connection.is_closed


async def test_a_connection_that_the_server_ends_while_it_is_idle_is_noticed(database, connection):
    await kill(database, connection)
    for _ in range(100):
        if connection.is_closed:
            break
        await asyncio.sleep(0.02)
    assert connection.is_closed
    connection.close()


async def test_many_statements_in_a_row_keep_their_answers_apart(connection):
    for size in range(200):
        assert read_bigint((await connection.fetch_row(b"length", [b"x" * size]))[0]) == size


async def test_texts_of_every_kind_arrive(connection, database):
    words = ["", "a", "é😀", 'quote " \\ {,} NULL']
    await connection.prepare({b"words": "SELECT w FROM unnest($1::text[]) AS w"})
    result = await connection.run(b"words", [Texts(words).payload])
    assert [(result.get_value(row, 0) or b"").decode() for row in range(result.ntuples)] == words
