"""Statements without a cursor: right answers, the driver's own errors, and no answer that belongs to another."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest
from tests.support.waiting import until

from regulars.kit.arrays import Blobs, Texts, read_bigint
from regulars.kit.connection import Prepared

pytestmark = pytest.mark.anyio

STATEMENTS = {
    b"length": Prepared(b"length", "SELECT length($1::text)::bigint, $1::text IS NULL"),
    b"many": Prepared(b"many", "SELECT n, n * n FROM unnest($1::bigint[]) AS n"),
    b"slow": Prepared(b"slow", "SELECT 1 FROM pg_sleep(30)"),
    b"sum": Prepared(b"sum", "SELECT sum(length(b))::bigint FROM unnest($1::bytea[]) AS b"),
    b"echo": Prepared(b"echo", "SELECT b FROM unnest($1::bytea[]) AS b"),
    b"divide": Prepared(b"divide", "SELECT 1 / length($1::text)"),
    b"number": Prepared(b"number", "SELECT pg_backend_pid()::bigint"),
}


@pytest.fixture
async def connection(database):
    opened = await database.dial()
    yield opened
    opened.close_now()


async def until_running(database) -> None:
    query = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = %s"
    await until(lambda: database_rows(database, query, STATEMENTS[b"slow"].text))


async def database_rows(database, query: str, *values: object) -> list[object]:
    async with database.reading() as tx:
        return await tx.fetch(query, values)


async def kill(database, connection) -> None:
    [number] = await connection.fetch_row(STATEMENTS[b"number"], ())
    await database_rows(database, "SELECT pg_terminate_backend(%s)", read_bigint(number))


async def test_values_go_in_and_come_out_as_bytes(connection):
    length, is_null = await connection.fetch_row(STATEMENTS[b"length"], ["é😀".encode()])
    assert (read_bigint(length), read_bigint(is_null)) == (2, 0)
    assert await connection.fetch_row(STATEMENTS[b"length"], [None]) == [b"", b"\x01"]


async def test_a_statement_that_fails_raises_the_driver_s_error_and_the_next_one_runs(connection):
    with pytest.raises(psycopg.errors.DivisionByZero):
        await connection.run(STATEMENTS[b"divide"], [b""])
    assert read_bigint((await connection.fetch_row(STATEMENTS[b"length"], [b"abc"]))[0]) == 3


async def test_a_statement_that_cannot_be_prepared_raises(connection):
    with pytest.raises(psycopg.errors.UndefinedTable):
        await connection.run(Prepared(b"nothing", "SELECT FROM nothing"), ())


async def test_more_than_the_socket_takes_at_once_arrives_and_comes_back(connection):
    blobs = [bytes([number % 256]) * 100_000 for number in range(200)]
    [total] = await connection.fetch_row(STATEMENTS[b"sum"], [Blobs(blobs).payload])
    assert read_bigint(total) == 20_000_000
    result = await connection.run(STATEMENTS[b"echo"], [Blobs(blobs).payload])
    assert [result.get_value(row, 0) for row in range(result.ntuples)] == blobs


async def test_a_cancelled_call_closes_the_connection_so_that_no_caller_gets_the_wrong_answer(database, connection):
    waiting = asyncio.create_task(connection.run(STATEMENTS[b"slow"], ()))
    await until_running(database)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert connection.closed


async def test_a_connection_that_the_server_ends_while_it_works_is_an_operational_error(database, connection):
    [number] = await connection.fetch_row(STATEMENTS[b"number"], ())
    waiting = asyncio.create_task(connection.run(STATEMENTS[b"slow"], ()))
    await until_running(database)
    await database_rows(database, "SELECT pg_terminate_backend(%s)", read_bigint(number))
    with pytest.raises(psycopg.OperationalError):
        await waiting
    assert connection.closed


async def test_a_connection_that_the_server_ends_while_it_is_idle_is_noticed(database, connection):
    await kill(database, connection)
    await until(lambda: connection.closed)


async def test_many_statements_in_a_row_keep_their_answers_apart(connection):
    for size in range(200):
        assert read_bigint((await connection.fetch_row(STATEMENTS[b"length"], [b"x" * size]))[0]) == size


async def test_texts_of_every_kind_arrive(connection, database):
    words = ["", "a", "é😀", 'quote " \\ {,} NULL']
    statement = Prepared(b"words", "SELECT w FROM unnest($1::text[]) AS w")
    result = await connection.run(statement, [Texts(words).payload])
    assert [(result.get_value(row, 0) or b"").decode() for row in range(result.ntuples)] == words


async def test_a_statement_that_the_server_forgot_is_prepared_again(connection):
    for _ in range(3):
        assert await connection.fetch("SELECT %s::int + 1", (1,)) == [(2,)]
        assert read_bigint((await connection.fetch_row(STATEMENTS[b"length"], [b"abc"]))[0]) == 3
        await connection.execute("DEALLOCATE ALL")


async def test_a_savepoint_that_is_rolled_back_leaves_the_statements_prepared(connection):
    for _ in range(10):
        await connection.execute("SELECT 1")
        await connection.fetch("SELECT %s::int + 1", (1,))
    await connection.run_simple(b"BEGIN")
    with pytest.raises(ZeroDivisionError):
        async with connection.transaction():
            raise ZeroDivisionError
    await connection.execute("SELECT 1")
    assert await connection.fetch("SELECT %s::int + 1", (1,)) == [(2,)]


async def test_a_statement_whose_table_changed_is_prepared_again(connection):
    await connection.change("CREATE TABLE changing (x int)")
    await connection.change("INSERT INTO changing VALUES (1)")
    everything = Prepared(b"everything", "SELECT * FROM changing")
    for _ in range(3):
        assert await connection.fetch("SELECT * FROM changing") == [(1,)]
        await connection.run(everything, ())
    await connection.change("ALTER TABLE changing ADD COLUMN y text DEFAULT 'new'")
    assert await connection.fetch("SELECT * FROM changing") == [(1, "new")]
    assert (await connection.run(everything, ())).nfields == 2


async def test_places_are_positions_or_names_and_a_percent_sign_is_doubled(connection):
    assert await connection.fetch("SELECT %s || %s, '100%%'", ("a", "b")) == [("ab", "100%")]
    query = "SELECT %(first)s::text || %(second)s::text || %(first)s::text"
    for _ in range(3):
        assert await connection.fetch(query, {"second": "b", "first": "a"}) == [("aba",)]


async def test_a_wrong_number_of_values_is_an_error_and_unused_names_are_ignored(connection):
    for values in ((), (1, 2), {"a": 1, "b": 2}):
        with pytest.raises(psycopg.ProgrammingError, match="1 parameters"):
            await connection.fetch("SELECT %s::int", values)
    assert await connection.fetch("SELECT 1", {"unused": 2}) == [(1,)]


async def test_values_of_every_kind_come_back_as_the_driver_would_give_them(connection):
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    values = (UUID(int=7), moment, [1, 2], ["a", None], b"\x00\xff", 10**12, True, None, 1.5)
    query = (
        "SELECT %s::uuid, %s::timestamptz, %s::int[], %s::text[], %s::bytea, %s::bigint, %s::bool, %s::text, %s::float8"
    )
    driver = await (await connection.execute(query, values)).fetchall()
    for _ in range(3):
        assert await connection.fetch(query, values) == driver == [values]


async def test_the_driver_s_own_ways_and_ours_take_turns(connection):
    for number in range(3):
        assert await connection.fetch("SELECT %s::int", (number,)) == [(number,)]
        async with connection.transaction(), connection.cursor().copy("COPY (SELECT 1) TO STDOUT") as copy:
            assert [row async for row in copy.rows()] == [("1",)]


async def test_more_texts_than_are_remembered_still_run(connection, monkeypatch):
    monkeypatch.setattr("regulars.kit.connection.STATEMENTS_MAX", 3)
    for _ in range(2):
        for number in range(6):
            assert await connection.fetch(f"SELECT {number}") == [(number,)]
