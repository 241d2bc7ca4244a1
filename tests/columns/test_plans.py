"""A build and the feeder read each row by its key, also where the planner knows nothing of the organization yet."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from tests.columns.fed_shop import FedShop
from tests.support.plans import rows_read, watch

from regulars.columns.column_rows import find_numbers
from regulars.columns.feed import build
from regulars.kit.db import Database, Tx

CUSTOMERS = 3_000
# Of some hundred that are found.
THROWN_MAX = 100
PROFILES = """
INSERT INTO profiles (organization_id, id, external_id, first_name, created_at, updated_at)
SELECT organization, gen_random_uuid(), 'C' || n, 'Camille', now(), now()
FROM (VALUES (%s::uuid)) AS it (organization), generate_series(1, %s) AS n
"""
TICKETS = """
INSERT INTO sales_events (organization_id, id, external_id, type, occurred_at, store_id, profile_id, currency,
                          total_amount_cents, total_discount_cents, line_items, created_at)
SELECT organization_id, gen_random_uuid(), external_id, 'PURCHASE', now(), %s, id, 'EUR', 100, 0, '[]', now()
FROM profiles WHERE organization_id = %s
"""
# One for each ticket, as single requests leave them.
FACTS = """
INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
SELECT %s, gen_random_uuid(), 'sales.recorded',
       json_build_array(json_build_object('sales', json_build_array(id))), now(), now()
FROM sales_events WHERE organization_id = %s
"""


@pytest.fixture
def fresh(database_url: str) -> Iterator[tuple[asyncio.Runner, Database]]:
    """A database of its own, of which nothing is known, and nothing becomes known while a test runs."""
    with psycopg.connect(database_url) as connection:
        for table in ("profiles", "sales_events", "outbox", "segment_customers"):
            connection.execute(SQL("ALTER TABLE {} SET (autovacuum_enabled = false)").format(Identifier(table)))
    with asyncio.Runner() as runner:
        database = Database(database_url, pool_max=4, statement_timeout_ms=100_000)
        runner.run(database.open())
        try:
            yield runner, database
        finally:
            runner.run(database.close())


def filled(runner: asyncio.Runner, database: Database) -> FedShop:
    shop = FedShop(runner, database)
    shop.sql(PROFILES, CUSTOMERS)

    async def sell(tx: Tx) -> None:
        await tx.execute(TICKETS, (shop.stores["LYO"], shop.organization_id))

    shop.do(sell)
    shop.begin()
    return shop


@pytest.mark.parametrize("is_second", [False, True])
def test_no_statement_reads_the_others_to_find_one(fresh, monkeypatch, is_second):
    monkeypatch.setattr(build, "BATCH_CUSTOMERS", 500)
    monkeypatch.setattr(build, "BATCH_SALES", 500)
    if is_second:
        # What the planner knows is that all rows are another organization's.
        first = filled(*fresh)
        first.build()
        first.runner.run(analyze(first.database))
    shop = filled(*fresh)
    for number in range(20):
        shop.sale(f"C{number}")
    thrown = watch(monkeypatch)
    shop.build()
    shop.drain()
    assert shop.ask({"type": "all", "of": []}, want="members", limit=1000).members is not None
    assert {text: lost for text, lost in thrown.items() if lost > THROWN_MAX} == {}


def test_numbers_are_found_by_profiles_among_many(fresh, monkeypatch):
    shop = FedShop(*fresh)
    shop.alter(
        "INSERT INTO segment_customers (organization_id, epoch, profile_id, number)"
        " SELECT %s, 1, gen_random_uuid(), n FROM generate_series(0, 39999) AS n"
    )
    wanted = range(0, 40_000, 800)
    rows = shop.sql("SELECT profile_id FROM segment_customers WHERE organization_id = %s AND number %% 800 = 0")
    thrown = watch(monkeypatch)

    async def find(tx: Tx) -> None:
        numbers = await find_numbers(tx, shop.organization_id, 1, [profile_id.bytes for (profile_id,) in rows])
        assert sorted(numbers.values()) == list(wanted)

    shop.do(find)
    assert {text: lost for text, lost in thrown.items() if lost > THROWN_MAX} == {}


async def analyze(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("ANALYZE")


def test_a_batch_of_a_build_does_not_read_the_backlog_once_for_each_sale(fresh, monkeypatch):
    """Each fact may name any number of sales, so the planner takes a backlog of a few hundred for millions."""
    shop = filled(*fresh)
    shop.sql(FACTS, shop.organization_id)
    read = watch(monkeypatch, rows_read)
    shop.build()
    shop.drain()
    [(sales,)] = shop.sql(
        "SELECT sum(rows) FROM segment_runs WHERE organization_id = %s AND kind = 'sales' AND is_live"
    )
    assert sales == CUSTOMERS
    assert {text: rows for text, rows in read.items() if rows > 10 * CUSTOMERS} == {}
