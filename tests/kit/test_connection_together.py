"""Several statements as one: one transaction, each result for its statement, and nothing when one of them fails."""

import asyncio

import psycopg
import pytest

from regulars.kit.arrays import bigint, read_bigint
from regulars.kit.connection import Prepared

pytestmark = pytest.mark.anyio

LENGTH = Prepared(b"length", "SELECT length($1::text)::bigint")
DIVIDE = Prepared(b"divide", "SELECT 1 / length($1::text)")
PUT = Prepared(b"put", "INSERT INTO things SELECT $1::bigint")
COUNT = Prepared(b"count", "SELECT count(*) FROM things")
NUMBER = Prepared(b"number", "SELECT pg_backend_pid()::bigint")
WAIT = Prepared(b"wait", "SELECT FROM pg_sleep(30)")


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
