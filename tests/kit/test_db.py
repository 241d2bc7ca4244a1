import asyncio
import socket
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.support.database import pretend_to_be_a_cluster
from tests.support.waiting import until

from regulars.kit import db_session
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.pool import PoolTimeout

pytestmark = pytest.mark.anyio


async def test_a_transaction_has_one_time_truncated_to_the_millisecond(database):
    async with database.transaction() as tx:
        [(before,)] = await tx.fetch("SELECT now()")
        await asyncio.sleep(0.01)
        [(after, zone)] = await tx.fetch("SELECT now(), current_setting('timezone')")
    assert before == after
    assert zone == "UTC"
    assert timedelta() <= before - tx.now < timedelta(milliseconds=1)
    assert tx.now.microsecond % 1000 == 0
    assert tx.now.tzinfo is not None


async def test_a_read_knows_the_time_too_and_sees_every_commit(database):
    async with database.reading() as tx:
        assert abs(tx.now - datetime.now(UTC)) < timedelta(seconds=5)
        assert tx.now.microsecond % 1000 == 0
        await tx.execute("CREATE TABLE seen (x int)")
        async with database.transaction() as other:
            await other.execute("INSERT INTO seen VALUES (1)")
            assert await tx.fetch("SELECT x FROM seen") == []
        assert await tx.fetch("SELECT x FROM seen") == [(1,)]


async def test_a_failed_transaction_leaves_nothing_and_gives_its_connection_back(database):
    async with database.reading() as tx:
        await tx.execute("CREATE TABLE kept (x int PRIMARY KEY)")

    async def insert_twice() -> None:
        async with database.transaction() as tx:
            await tx.execute("INSERT INTO kept VALUES (1)")
            await tx.execute("INSERT INTO kept VALUES (1)")

    for _ in range(30):
        with pytest.raises(psycopg.errors.UniqueViolation):
            await insert_twice()
    async with database.reading() as tx:
        assert await tx.fetch("SELECT x FROM kept") == []
    assert database.pool_use()["waiting"] == 0


async def test_the_time_a_statement_may_wait_for_a_lock_is_bounded(database_url):
    impatient = Database(database_url, lock_timeout_ms=50)
    await impatient.open()
    try:
        async with impatient.transaction() as first, impatient.connection() as second:
            await first.execute("CREATE TABLE locked (x int)")
            await first.execute("SELECT pg_advisory_xact_lock(1)")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                await second.execute("SELECT pg_advisory_lock(1)")
    finally:
        await impatient.close()


async def terminate_all_others(database_url: str) -> int:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        cursor = await connection.execute(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        row = await cursor.fetchone()
        return 0 if row is None else row[0]


async def use(database: Database) -> int:
    async with database.transaction() as tx:
        [(one,)] = await tx.fetch("SELECT 1")
        return one


async def test_a_transaction_may_be_idle_as_long_as_its_process_allows(database_url):
    patient = Database(database_url, idle_in_transaction_ms=600_000)
    await patient.open()
    async with patient.transaction() as tx:
        assert await tx.fetch("SHOW idle_in_transaction_session_timeout") == [("10min",)]
    await patient.close()


async def test_no_caller_fails_when_the_server_has_ended_all_idle_connections(database, database_url):
    assert await asyncio.gather(*(use(database) for _ in range(20))) == [1] * 20
    # Two are open at once, however quickly the first is free again.
    async with database.connection(), database.connection():
        pass
    assert await terminate_all_others(database_url) >= 2
    assert await asyncio.gather(*(use(database) for _ in range(20))) == [1] * 20
    assert database.pool_use()["waiting"] == 0


async def test_an_idle_connection_that_was_closed_on_our_side_takes_no_place_in_the_pool(database_url):
    alone = Database(database_url, pool_max=1)
    await alone.open()
    try:
        async with alone.connection() as connection:
            pass
        connection.pgconn.finish()
        assert [await use(alone), await use(alone)] == [1, 1]
    finally:
        await alone.close()


async def test_a_word_of_the_server_to_an_idle_connection_does_not_end_it(database_url):
    alone = Database(database_url, pool_max=1)
    await alone.open()
    try:
        async with alone.connection() as connection:
            await connection.execute("LISTEN chatter")
            pid = connection.info.backend_pid
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
            await other.execute("NOTIFY chatter, 'hello'")
        async with alone.connection() as connection:
            assert connection.info.backend_pid == pid
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
    finally:
        await alone.close()


async def test_a_connection_that_ends_in_the_middle_of_a_transaction_is_an_error_and_then_forgotten(
    database, database_url
):
    async def lose_the_connection() -> None:
        async with database.transaction() as tx:
            await terminate_all_others(database_url)
            await tx.fetch("SELECT 1")

    with pytest.raises(CONNECTION_ERRORS):
        await lose_the_connection()
    assert await use(database) == 1


PINNED = {
    "default_transaction_isolation": ("serializable", "read committed"),
    "datestyle": ("German", "ISO, MDY"),
    "standard_conforming_strings": ("off", "on"),
    "timezone": ("Asia/Kolkata", "UTC"),
    "search_path": ("pg_temp", "public"),
    "synchronous_commit": ("off", "on"),
    "bytea_output": ("escape", "hex"),
}


async def test_settings_of_the_role_or_the_database_change_nothing_for_any_connection_of_ours(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = psycopg.sql.Identifier(connection.info.dbname)
        for setting, (theirs, _) in PINNED.items():
            connection.execute(
                psycopg.sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    name, psycopg.sql.Identifier(setting), psycopg.sql.Literal(theirs)
                )
            )
    expected = {setting: ours for setting, (_, ours) in PINNED.items()}
    database = Database(database_url)
    await database.open()
    async with database.reading() as tx:
        assert await _settings(tx.connection) == expected
    dialled = await database.dial()
    assert await _settings(dialled) == expected
    await dialled.close()
    await database.close()
    with db_session.connect(database_url) as command:
        assert dict(command.execute(SETTINGS, {"names": sorted(PINNED)}).fetchall()) == expected


SETTINGS = "SELECT name, current_setting(name) AS value FROM unnest(%(names)s::text[]) AS name"


async def _settings(connection):
    return dict(await (await connection.execute(SETTINGS, {"names": sorted(PINNED)})).fetchall())


async def test_the_options_of_the_address_hold_beside_ours(database_url):
    database = Database(f"{database_url}{'&' if '?' in database_url else '?'}options=-c%20work_mem%3D7MB")
    await database.open()
    async with database.reading() as tx:
        assert await tx.fetch("SELECT current_setting('work_mem'), current_setting('timezone')") == [("7MB", "UTC")]
    await database.close()


async def test_a_connection_that_is_lent_too_long_is_cut_off_whatever_it_waits_for(database):
    for statement in ("SELECT pg_sleep(600)", "SELECT pg_sleep(%s)"):
        with pytest.raises(psycopg.OperationalError) as read:
            async with database.reading(until=monotonic() + 0.2) as tx:
                await tx.fetch(statement, (600,) if "%s" in statement else ())
        with pytest.raises(psycopg.OperationalError) as written:
            async with database.connection(until=monotonic() + 0.2) as connection:
                await connection.execute("SELECT pg_sleep(600)")
        # No caller waited for the server to cancel them, which it does in the end.
        for cut_off in (read, written):
            assert not isinstance(cut_off.value, psycopg.errors.QueryCanceled)
    async with database.reading() as tx:
        assert await tx.fetch("SELECT 1") == [(1,)]


async def test_a_server_that_takes_a_connection_and_says_nothing_delays_no_caller_beyond_its_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        database = Database(f"postgresql://somebody@{host}:{port}/")
        with pytest.raises(PoolTimeout):
            async with database.reading(until=monotonic() + 0.2):
                pass
        assert database.pool_use() == {"open": 0, "idle": 0, "waiting": 0}


async def test_reads_leave_connections_to_writes(database_url):
    database = Database(database_url, pool_max=3)
    async with database.reading():
        with pytest.raises(psycopg.OperationalError):
            async with database.reading(until=monotonic() + 0.1):
                pass
        async with database.transaction() as tx:
            assert await tx.fetch("SELECT 1") == [(1,)]
    async with database.reading() as tx:
        assert await tx.fetch("SELECT 1") == [(1,)]
    await database.close()


async def test_a_caller_that_stops_waiting_as_a_connection_becomes_free_leaves_it_to_the_pool(database_url):
    database = Database(database_url, pool_max=1)
    async with database.connection():
        waiting = asyncio.create_task(use(database))
        await until(lambda: database.pool_use()["waiting"])
        # The connection is given back before the task is cancelled.
        waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await use(database) == 1
    assert database.pool_use() == {"open": 1, "idle": 1, "waiting": 0}
    await database.close()


@pytest.mark.parametrize(("is_cluster", "mode"), [(False, "force_generic_plan"), (True, "auto")])
async def test_statements_that_record_are_planned_once_but_on_a_cluster_for_their_values(
    database_url, is_cluster, mode
):
    if is_cluster:
        pretend_to_be_a_cluster(database_url)
    database = Database(database_url)
    async with database.recording() as connection:
        assert await connection.fetch("SELECT current_setting('plan_cache_mode')") == [(mode,)]
    await database.close()
