"""The search of lists of sales in blocks: the same sales as a filter over all of them, and few rows read."""

import random
import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import pytest
from tests.sales.desk import STORE
from tests.support.many_sales import insert_sales

from regulars.kit.errors import Unavailable
from regulars.sales.blocks import build, search
from regulars.sales.blocks.order import ALL_STORES
from regulars.sales.listing import list_sales

pytestmark = pytest.mark.anyio

START = datetime(2026, 3, 1, tzinfo=UTC)
SECRET = b"secret"
# In runs of 40 sales that are alike, so that blocks differ; times of sale are in no order.
MIXED = """
    (%(stores)s::uuid[])[1 + n / 40 %% 3] AS store_id, NULL::uuid AS profile_id,
    %(start)s::timestamptz + (n * 7919 %% 500) * interval '1 hour' AS occurred_at,
    %(start)s::timestamptz + n * interval '1 minute' AS created_at,
    CASE WHEN n / 50 %% 4 = 2 THEN 'RETURN' ELSE 'PURCHASE' END AS type,
    CASE WHEN n / 30 %% 5 = 3 THEN 'GBP' ELSE 'EUR' END AS currency
"""


@pytest.fixture
async def small(monkeypatch):
    """Blocks and scans of a few sales."""
    monkeypatch.setattr(build, "BLOCK_SALES", 10)
    monkeypatch.setattr(build, "_BATCH_SALES", 200)
    monkeypatch.setattr(search, "BLOCK_SALES", 10)
    monkeypatch.setattr(search, "SCANNED_MAX", 12)


class Stored(NamedTuple):
    external_id: str
    id: UUID
    store: str
    type: str
    currency: str
    occurred_at: datetime
    created_at: datetime


async def fill(desk, *, count: int, name: str = "S-", start: datetime = START) -> None:
    """Store mixed sales of three stores."""
    await desk.open_store("S-2", "S-3")
    stores = await desk.rows("SELECT id FROM stores WHERE organization_id = %s ORDER BY external_id")
    values = {"stores": [store for (store,) in stores], "start": start, "count": count, "name": name, "width": 0}
    async with desk.database.transaction() as tx:
        await tx.execute(insert_sales(MIXED), {**values, "organization_id": desk.organization_id})


async def find_stored(desk) -> list[Stored]:
    rows = await desk.rows(
        """
        SELECT e.external_id, e.id, s.external_id, e.type, e.currency, e.occurred_at, e.created_at
        FROM sales_events AS e JOIN stores AS s ON s.organization_id = e.organization_id AND s.id = e.store_id
        WHERE e.organization_id = %s
        """
    )
    return [Stored(*row) for row in rows]


async def build_all(desk) -> None:
    stores = await desk.rows("SELECT id FROM stores WHERE organization_id = %s")
    for scope in (ALL_STORES, *(store for (store,) in stores)):
        has_more = True
        while has_more:
            async with desk.database.transaction() as tx:
                has_more = await build.build_blocks(tx, desk.organization_id, scope)


async def walk(desk, query: dict[str, str]) -> tuple[list[str], bool]:
    """The tickets of all pages, and whether the list came to its end."""
    found: list[str] = []
    cursor = None
    while True:
        page = {**query, "limit": "4"} | ({} if cursor is None else {"cursor": cursor})
        try:
            async with desk.database.reading() as tx:
                sales, has_more, cursor = await list_sales(tx, desk.organization_id, page, secret=SECRET)
        except Unavailable as error:
            refusal = str(error)
            break
        assert sales or not has_more, "an empty page before the end"
        found += [sale.ticket.external_id for sale in sales]
        if not has_more:
            return found, True
    assert re.search(r"Narrow (occurred|created)_from and \1_to", refusal)
    return found, False


def matching(stored: list[Stored], query: dict[str, str]) -> list[str]:
    """The tickets that a filter over all sales finds."""
    by_time = not query.keys().isdisjoint({"occurred_from", "occurred_to"}) and "updated_from" not in query
    rows = sorted(stored, key=lambda row: (row.occurred_at, row.id) if by_time else row.id)
    tests = {
        "type": lambda row, value: row.type == value,
        "currency": lambda row, value: row.currency == value,
        "store_id": lambda row, value: row.store == value,
        "occurred_from": lambda row, value: row.occurred_at >= datetime.fromisoformat(value),
        "occurred_to": lambda row, value: row.occurred_at < datetime.fromisoformat(value),
        "created_from": lambda row, value: row.created_at >= datetime.fromisoformat(value),
        "updated_from": lambda row, value: row.created_at >= datetime.fromisoformat(value),
        "created_to": lambda row, value: row.created_at < datetime.fromisoformat(value),
    }
    return [row.external_id for row in rows if all(tests[name](row, value) for name, value in query.items())]


def draw_query(dice: random.Random) -> dict[str, str]:
    """Some filters; at least one is searched for."""
    moments = [(START + timedelta(minutes=dice.randrange(0, 400))).isoformat() for _ in range(2)]
    hours = [(START + timedelta(hours=dice.randrange(0, 500))).isoformat() for _ in range(2)]
    values = {
        "type": dice.choice(["RETURN", "PURCHASE"]),
        "currency": dice.choice(["GBP", "EUR", "CHF"]),
        "store_id": dice.choice([STORE, "S-2", "S-3"]),
        "created_from": min(moments),
        "created_to": max(moments),
    }
    names = dice.sample(sorted(values), dice.randint(1, 3))
    times = {"occurred_from": min(hours), "occurred_to": max(hours)}
    chosen = {name: values[name] for name in names} | ({"updated_from": moments[0]} if dice.random() < 0.3 else {})
    return chosen | {name: times[name] for name in dice.sample(sorted(times), dice.choice([0, 0, 1, 2]))}


@pytest.mark.parametrize("has_blocks", [False, True])
async def test_a_search_finds_what_a_filter_over_all_sales_finds(desk, small, has_blocks):
    await fill(desk, count=400)
    if has_blocks:
        await build_all(desk)
        # Sales after the last block, and sales whose ids are older than their time of creation.
        await fill(desk, count=425)
    stored, dice = await find_stored(desk), random.Random(7)
    unfinished = 0
    for _ in range(80):
        query = draw_query(dice)
        expected = matching(stored, query)
        found, is_whole = await walk(desk, query)
        assert found == (expected if is_whole else expected[: len(found)]), query
        unfinished += not is_whole
        assert is_whole or "occurred_from" in query or "occurred_to" in query, query
    # Times in no order, in blocks of ten: some lists end with the request to narrow them.
    assert unfinished < 35


async def expect_all_found(desk) -> None:
    stored = await find_stored(desk)
    for query in (
        {"type": "RETURN"},
        {"currency": "GBP", "store_id": "S-2"},
        {"created_from": stored[-1].created_at.isoformat()},
    ):
        assert await walk(desk, query) == (matching(stored, query), True), query


async def test_blocks_that_are_built_while_a_page_is_read_lose_no_sale(desk, small, monkeypatch):
    await fill(desk, count=400)
    find_blocks = search.Search._find_blocks
    built = []

    async def build_after(*arguments, **options):
        found = await find_blocks(*arguments, **options)
        built.append(len(found))
        await build_all(desk)
        return found

    monkeypatch.setattr(search.Search, "_find_blocks", build_after)
    await expect_all_found(desk)
    assert built[0] == 0


async def test_sales_that_a_clock_set_back_put_among_the_blocks_are_found(desk, small, monkeypatch):
    await fill(desk, count=400)
    later = START + timedelta(minutes=205)
    clock = {"horizon": START + timedelta(days=300)}

    async def read_horizon(_tx):
        return clock["horizon"]

    monkeypatch.setattr(build, "read_horizon", read_horizon)
    await build_all(desk)
    # The clock shows an earlier time than that of the last block. Returns get ids where there were none.
    clock["horizon"] = later
    await fill(desk, count=110, name="AGAIN-", start=START + timedelta(minutes=90, seconds=30))
    await build_all(desk)
    clock["horizon"] = START + timedelta(days=300)
    await build_all(desk)
    await expect_all_found(desk)
