"""Sales figures equal plain SQL over the rows, whatever was sold, returned, sent late or erased, in any time zone."""

import asyncio
import os
import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.sales.desk import Desk, ticket

from regulars.analytics.figures import find_comparable_stores, read_totals
from regulars.analytics.period import Comparison, Period, comparison_of, parts_of
from regulars.analytics.query import DAY, DIMENSIONS, Query
from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.organizations.facts import TimeZoneChanged
from regulars.sales.facts import SalesRecorded
from regulars.sales.jobs import count_new_sales, recount_in_time_zone
from regulars.sales.personal import anonymise_sales
from regulars.sales.totals import fill as filling
from regulars.sales.totals.model import PerCurrency, Sums, add_totals
from regulars.work.loop import run_worker
from regulars.work.outbox import OutboxQueue
from regulars.worker import LISTENERS

pytestmark = pytest.mark.anyio
ZONES = ("Europe/Paris", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Chatham", "UTC")
CURRENCIES = ("EUR", "GBP", "USD", "CHF")
STORES = ("A", "B", "C", "D")
# Both changes of the clock of every zone above lie in it.
FIRST, LAST = date(2025, 1, 1), date(2025, 12, 31)
SEEDS = range(int(os.environ.get("REGULARS_TEST_SEEDS", "6")))
SALES = 150
# Written apart from the statements of the package: from the rows, by expressions of its own.
ORACLE = """
WITH tickets AS (
    SELECT e.*, (e.occurred_at AT TIME ZONE %(zone)s) AS local,
           (SELECT coalesce(sum(CASE WHEN l->>'unit' IS NULL THEN (l->>'quantity')::numeric
                                     WHEN (l->>'quantity')::numeric < 0 THEN -1 ELSE 1 END), 0)
            FROM json_array_elements(e.line_items) AS l) AS units
    FROM sales_events AS e WHERE e.organization_id = %(organization_id)s
), chosen AS (
    SELECT t.*, ARRAY(SELECT CASE one
        WHEN 'hour' THEN to_char(local, 'FMHH24')
        WHEN 'day' THEN local::date::text
        WHEN 'week' THEN greatest(date_trunc('week', local)::date, %(first)s::date)::text
        WHEN 'month' THEN greatest(date_trunc('month', local)::date, %(first)s::date)::text
        WHEN 'country' THEN coalesce((SELECT address ->> 'country_code' FROM stores AS s WHERE s.id = store_id), 'None')
        WHEN 'store' THEN store_id::text END FROM unnest(%(by)s::text[]) WITH ORDINALITY AS given (one, n) ORDER BY n) AS key
    FROM tickets AS t
    WHERE local::date BETWEEN %(first)s AND %(last)s AND (%(stores)s::uuid[] IS NULL OR store_id = ANY(%(stores)s))
)
SELECT key, currency, count(*) FILTER (WHERE type = 'PURCHASE'), count(*) FILTER (WHERE type = 'RETURN'),
       count(*) FILTER (WHERE profile_id IS NOT NULL OR anonymised_at IS NOT NULL),
       coalesce(sum(total_amount_cents) FILTER (WHERE type = 'PURCHASE'), 0)::bigint,
       coalesce(sum(total_amount_cents) FILTER (WHERE type = 'RETURN'), 0)::bigint,
       coalesce(sum(total_discount_cents) FILTER (WHERE type = 'PURCHASE'), 0)::bigint,
       (coalesce(sum(total_tax_cents) FILTER (WHERE type = 'PURCHASE'), 0)
        - coalesce(sum(abs(total_tax_cents)) FILTER (WHERE type = 'RETURN'), 0))::bigint,
       coalesce(sum(units) FILTER (WHERE type = 'PURCHASE'), 0),
       coalesce(sum(abs(units)) FILTER (WHERE type = 'RETURN'), 0),
       coalesce(sum(json_array_length(line_items)) FILTER (WHERE type = 'PURCHASE'), 0)::bigint
FROM chosen GROUP BY 1, 2
"""


def lines(chance: random.Random) -> list[dict[str, object]]:
    return [
        {
            "quantity": chance.choice([1, 1, 2, 5, -1, -3, 0.5, 1.25, 0.001]),
            "unit": chance.choice([None, None, None, "kg", "m"]),
            "total_price_cents": chance.randrange(-500, 5000),
        }
        for _ in range(chance.randrange(1, 4))
    ]


def near_midnight(chance: random.Random) -> datetime:
    """Any moment, often at the edge of a day or of an hour of one of the zones."""
    moment = datetime(2024, 12, 30, tzinfo=UTC) + timedelta(minutes=chance.randrange(369 * 24 * 60))
    if chance.random() < 0.5:
        quarter = moment.replace(minute=chance.choice([0, 15, 30, 45]), second=0)
        moment = quarter + timedelta(milliseconds=chance.choice([-1, 0, 1]))
    return moment


def tickets(chance: random.Random, start: int, many: int):
    kind = chance.choice([["PURCHASE"], ["RETURN"], ["PURCHASE", "PURCHASE", "RETURN"]])
    for number in range(start, start + many):
        yield ticket(
            f"T-{number}",
            type=chance.choice(kind),
            occurred_at=near_midnight(chance).isoformat(timespec="milliseconds"),
            store_id=chance.choice(STORES),
            currency=chance.choice(CURRENCIES),
            profile_id=chance.choice([None, "ada", "eve", "joe"]),
            total_amount_cents=chance.choice([0, 1, 999, 2**53 - 1, chance.randrange(100_000)]),
            total_discount_cents=chance.choice([0, 0, 150]),
            total_tax_cents=chance.choice([None, 20, -20, 0]),
            line_items=lines(chance),
        )


async def count(desk: Desk) -> None:
    async with desk.database.transaction() as tx:
        facts = [SalesRecorded(list(map(UUID, map(str, sales)))) for sales in await desk.published_sales()]
        await tx.execute("DELETE FROM outbox WHERE organization_id = %s", (desk.organization_id,))
        await count_new_sales(tx, desk.organization_id, facts)


async def move_to(desk: Desk, zone: str) -> None:
    async with desk.database.transaction() as tx:
        await tx.execute(
            "INSERT INTO organizations (id, name, time_zone, created_at) VALUES (%s, %s, %s, now())"
            " ON CONFLICT (id) DO UPDATE SET time_zone = excluded.time_zone",
            (desk.organization_id, str(desk.organization_id), zone),
        )


async def oracle(desk: Desk, **given: object) -> dict[tuple[str, ...], PerCurrency]:
    async with desk.database.reading() as tx:
        rows = await tx.fetch(ORACLE, {"organization_id": desk.organization_id, **given})
    found: dict[tuple[str, ...], dict[str, Sums]] = {}
    for key, currency, *figures in rows:
        found.setdefault(tuple(key), {})[currency] = Sums(*figures)
    return {key: PerCurrency(sums) for key, sums in found.items()}


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_figure_equals_plain_sql_over_the_rows(database, seed, monkeypatch):
    monkeypatch.setattr(filling, "SALE_AGE_MIN", timedelta(seconds=-60))
    chance = random.Random(seed)
    zone = ZONES[seed % len(ZONES)]
    desk = Desk(database, new_uuid())
    await move_to(desk, zone)
    await desk.open_store(*STORES)
    await desk.record(*tickets(chance, 0, SALES))
    await count(desk)
    # Sales of an older release, whose units were not counted; another zone, so that the fill counts all again.
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE sales_events SET unit_millionths = NULL, line_count = NULL WHERE organization_id = %s AND random() < 0.5",
            (desk.organization_id,),
        )
    zone = ZONES[(seed + 1) % len(ZONES)]
    await move_to(desk, zone)
    async with database.transaction() as tx:
        await recount_in_time_zone(tx, desk.organization_id, [TimeZoneChanged()])
    while await filling.fill_batch(database, desk.organization_id, sales_max=64):
        pass
    # A late file, and a customer who is erased afterwards.
    await desk.record(*tickets(chance, SALES, SALES))
    await count(desk)
    async with database.transaction() as tx:
        customers = await tx.fetch(
            "SELECT id FROM profiles WHERE organization_id = %s LIMIT 1", (desk.organization_id,)
        )
        await anonymise_sales(tx, desk.organization_id, [row[0] for row in customers])
    stores = [row[0] for row in await desk.rows("SELECT id FROM stores WHERE organization_id = %s")]
    for _ in range(20):
        first = FIRST + timedelta(days=chance.randrange(364))
        last = min(LAST, first + timedelta(days=chance.choice([0, 1, 6, 30, 364])))
        chosen = chance.choice([None, stores[:1], stores[1:3], []])
        await compare(desk, Period(first, last), chosen, zone, chance)


OF_TOTALS = ("hour", "day", "week", "month", "store", "country")


async def compare(desk: Desk, period: Period, stores: list[UUID] | None, zone: str, chance: random.Random) -> None:
    wholes = []
    pairs = [tuple(chance.sample(OF_TOTALS, 2)) for _ in range(4)]
    for by in ((), *((one,) for one in OF_TOTALS), *pairs):
        comparison = comparison_of(period, chance.choice(["weekdays", "before", "dates", "none"]))
        query = Query(
            period=period,
            by=tuple(DIMENSIONS[name][0] for name in by),
            comparison=comparison,
            store_ids=None if stores is None else tuple(stores),
        )
        assert query.source == "totals"
        async with desk.database.snapshot() as tx:
            figures = await read_totals(tx, desk.organization_id, query)
        given = {"by": list(by), "stores": stores, "zone": zone}
        wanted = await oracle(desk, **given, first=period.first, last=period.last)
        assert as_texts(figures.rows) == wanted
        assert figures.total == add_totals(wanted.values())
        assert figures.progress.filled_until is None
        wholes.append(figures.total)
        if comparison is not None and len({"day", "week", "month"} & {*by}) < 2:
            assert as_texts(figures.compared) == await compared_oracle(desk, comparison, by, given)
    # Days, weeks, months, hours, stores and countries add up to the same period.
    assert all(whole == wholes[0] for whole in wholes)


def as_texts(rows: Mapping[Any, PerCurrency]) -> dict[tuple[str, ...], PerCurrency]:
    return {tuple(map(str, keys)): total for keys, total in rows.items()}


async def compared_oracle(
    desk: Desk, comparison: Comparison, by: tuple[str, ...], given: dict[str, Any]
) -> dict[tuple[str, ...], PerCurrency]:
    """The compared days, one by one, with the names of the parts that they are compared with."""
    unit = next((name for name in by if name in {"day", "week", "month"}), None)
    found: dict[tuple[str, ...], list[PerCurrency]] = {}
    for part in [comparison.current] if unit is None else parts_of(comparison.current, unit):
        days = comparison.compared_part_of(part) if unit else comparison.period
        if days is None:
            continue
        # The name of a part is its first day, also of a time beside it.
        rows = await oracle(desk, **given, first=days.first, last=days.last)
        for keys, total in rows.items():
            named = tuple(str(part.first) if name == unit else key for name, key in zip(by, keys, strict=True))
            found.setdefault(named, []).append(total)
    return {keys: add_totals(totals) for keys, totals in found.items()}


async def test_a_sale_is_in_the_figures_within_five_seconds_of_its_commit(database):
    desk = Desk(database, new_uuid())
    await move_to(desk, "Europe/Paris")
    await desk.open_store("A")
    # A worker of another process, which learns of the sale as it would in production.
    elsewhere = Database(database.url)
    stop = asyncio.Event()
    working = asyncio.create_task(run_worker(elsewhere, [OutboxQueue(LISTENERS)], stop=stop, grace_s=5))

    async def until_counted(tickets: int) -> None:
        day = date(2026, 3, 1)
        counted = 0
        while counted != tickets:
            await asyncio.sleep(0.05)
            async with database.reading() as tx:
                figures = await read_totals(tx, desk.organization_id, Query(period=Period(day, day), by=(DAY,)))
            counted = figures.total.tickets

    try:
        # The worker connects and starts its loop with the first sale.
        for number, within_s in ((1, 60), (2, 5)):
            await desk.record(ticket(str(number), store_id="A", occurred_at="2026-03-01T12:00:00Z"))
            async with asyncio.timeout(within_s):
                await until_counted(number)
    finally:
        stop.set()
        await working
        await elsewhere.close()


async def test_comparable_stores_have_tickets_in_both_periods(database):
    desk = Desk(database, new_uuid())
    await move_to(desk, "Europe/Paris")
    await desk.open_store("A", "B")
    await desk.record(
        ticket("1", store_id="A", occurred_at="2025-03-01T12:00:00Z"),
        ticket("2", store_id="A", occurred_at="2026-03-01T12:00:00Z"),
        ticket("3", store_id="B", occurred_at="2026-03-01T12:00:00Z"),
    )
    await count(desk)
    [(known,)] = await desk.rows("SELECT id FROM stores WHERE organization_id = %s AND external_id = 'A'")
    periods = [Period(date(year, 3, 1), date(year, 3, 31)) for year in (2025, 2026)]
    async with database.reading() as tx:
        assert await find_comparable_stores(tx, desk.organization_id, *periods) == (known,)
