"""Tables that begin to fill get their statistics early, and once."""

from uuid import uuid4

import pytest
from tests.support.database import plant_catalog_of_a_cluster

from regulars.work.statistics import ROWS_MIN, Statistics

pytestmark = pytest.mark.anyio


INSERT = "INSERT INTO things SELECT n, repeat('x', 100) FROM generate_series(1, %s) n"


@pytest.fixture
async def things(database):
    async with database.transaction() as tx:
        # Autovacuum would sometimes be the first to analyze it.
        await tx.execute("CREATE TABLE things (n integer PRIMARY KEY, text text) WITH (autovacuum_enabled = false)")


async def do(database, statement, *values):
    async with database.transaction() as tx:
        await tx.execute(statement, values)


async def test_a_table_gets_statistics_when_it_has_rows_and_only_once(database, things):
    statistics = Statistics(database)
    assert "things" not in await statistics.gather()
    await do(database, INSERT, 1_000)
    assert "things" in await statistics.gather()
    async with database.reading() as tx:
        assert await tx.fetch("SELECT reltuples FROM pg_class WHERE relname = 'things'") == [(1_000,)]
    assert "things" not in await statistics.gather()


async def test_a_table_whose_rows_are_gone_is_not_looked_at_again_and_again(database, things):
    statistics = Statistics(database)
    await do(database, INSERT, 1_000)
    await do(database, "DELETE FROM things")
    assert "things" in await statistics.gather()
    assert "things" not in await statistics.gather()
    await do(database, INSERT, 5_000)
    assert "things" in await statistics.gather()


async def test_on_a_cluster_a_table_is_analyzed_for_the_rows_in_its_shards(database, things):
    plant_catalog_of_a_cluster(database.url)
    await do(database, "INSERT INTO pg_dist_partition VALUES ('things')")
    await do(database, "INSERT INTO planted_sizes VALUES ('things', 100)")
    statistics = Statistics(database)
    assert "things" not in await statistics.gather()
    for size, is_gathered in ((1 << 20, True), (1 << 20, False), (3 << 20, True)):
        await do(database, "UPDATE planted_sizes SET bytes = %s WHERE logicalrelid = 'things'::regclass", size)
        assert ("things" in await statistics.gather()) is is_gathered


async def test_a_locked_table_is_analysed_again_soon(database, things):
    statistics = Statistics(database)
    await do(database, INSERT, 1_000)
    async with database.transaction() as tx:
        await tx.execute("LOCK TABLE things IN SHARE MODE")
        assert "things" not in await statistics.gather()
    assert "things" in await statistics.gather()


async def test_a_number_is_found_by_its_own_index_once_the_table_has_statistics(database, organization_id):
    await do(
        database,
        "INSERT INTO subscriptions (organization_id, id, number_hash, status, entry_count, last_hash, created_at,"
        " updated_at) SELECT %s, gen_random_uuid(), sha256(n::text::bytea), 'SUBSCRIBED', 1, '', now(), now()"
        " FROM generate_series(1, 2000) n",
        organization_id,
    )
    assert "subscriptions" in await Statistics(database).gather()
    async with database.reading() as tx:
        plan = await tx.fetch(
            "EXPLAIN SELECT id FROM subscriptions WHERE organization_id = %s AND number_hash = sha256('7')",
            (organization_id,),
        )
    assert any("number_hash" in line and "Index Cond" in line for (line,) in plan)


async def test_a_table_is_analyzed_again_for_an_organization_that_came_later(database, organization_id):
    newcomer = uuid4()
    statistics = Statistics(database)

    async def fill(organization, rows):
        async with database.transaction() as tx:
            await tx.execute(
                "INSERT INTO stores (organization_id, id, external_id, created_at, updated_at)"
                " SELECT %s, gen_random_uuid(), gen_random_uuid()::text, now(), now() FROM generate_series(1, %s)",
                (organization, rows),
            )
            # So that the changes are counted now and not within a second.
            await tx.fetch("SELECT pg_stat_force_next_flush()")

    await do(database, "ALTER TABLE stores SET (autovacuum_enabled = false)")
    for organization in (organization_id, newcomer):
        await do(
            database,
            "INSERT INTO organizations (id, name, created_at) VALUES (%s, gen_random_uuid()::text, now())",
            organization,
        )
    await fill(organization_id, 2_000)
    assert "stores" in await statistics.gather()
    await fill(organization_id, ROWS_MIN)
    assert "stores" not in await statistics.gather()
    await fill(newcomer, ROWS_MIN - 1)
    assert "stores" not in await statistics.gather()
    await fill(newcomer, ROWS_MIN)
    async with database.transaction() as tx:
        await tx.execute("LOCK TABLE stores IN SHARE MODE")
        assert "stores" not in await statistics.gather()
    assert "stores" in await statistics.gather()
    await fill(newcomer, ROWS_MIN)
    assert "stores" not in await statistics.gather()
