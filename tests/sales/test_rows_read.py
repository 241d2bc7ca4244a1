"""No filter of a list of the API reads the whole table, also one that was never analyzed."""

import itertools
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from tests.sales.desk import STORE, Desk
from tests.support.many_sales import insert_sales
from tests.support.pages_read import count_pages
from tests.support.project import ROOT

from regulars.consent.find import list_subscriptions
from regulars.consent.model import Status
from regulars.kit.changes import ChangePosition
from regulars.kit.db import Database, Tx
from regulars.profiles.find import list_profiles
from regulars.profiles.write import create_light_profiles
from regulars.sales.blocks.build import build_blocks
from regulars.sales.blocks.order import ALL_STORES
from regulars.sales.listing import list_sales

pytestmark = pytest.mark.anyio

# Rows of 1,500 bytes, of which five are on a page. A list that reads them all reads 4,000 pages.
ROWS = 20_000
PAGES_MAX = 2_500
NOW = datetime.now(UTC)
START = NOW - timedelta(days=30)
# The last 15,000 sales are an import within an hour. Returns and pounds come last, in one store.
SALE = """
    (%(stores)s::uuid[])[1 + n %% 2] AS store_id, CASE WHEN n %% 1000 = 3 THEN %(profile)s END AS profile_id,
    %(start)s::timestamptz + n * interval '2 minutes' AS occurred_at,
    CASE WHEN n < 5000 THEN %(start)s::timestamptz + n * interval '2 minutes'
         ELSE %(now)s::timestamptz - interval '90 minutes' + n * interval '200 milliseconds' END AS created_at,
    CASE WHEN n > 19990 THEN 'RETURN' ELSE 'PURCHASE' END AS type,
    CASE WHEN n > 19980 AND n %% 2 = 1 THEN 'GBP' ELSE 'EUR' END AS currency
"""
PEOPLE = """
INSERT INTO {table} (organization_id, id, created_at, updated_at, {columns})
SELECT %(organization_id)s, (lpad(to_hex(n), 32, '0'))::uuid, %(start)s,
       %(start)s::timestamptz + (n * 7919 %% %(count)s) * interval '2 minutes', {values}
FROM generate_series(1, %(count)s) AS numbers (n)
"""
PROFILES = PEOPLE.replace("{table}", "profiles").replace("{columns}", "external_id, attributes").replace(
    "{values}", "'P-' || n, jsonb_build_object('a', repeat('x', 1500))"
)  # fmt: skip
# Those who are subscribed come last, in both orders.
SUBSCRIPTIONS = PEOPLE.replace("{table}", "subscriptions").replace(
    "{columns}", "number_hash, status, source_text, entry_count, last_hash"
).replace(
    "{values}",
    "decode(lpad(to_hex(n), 64, '0'), 'hex'), CASE WHEN n > 19990 OR n * 7919 %% %(count)s > 19990 THEN 'SUBSCRIBED'"
    " ELSE 'UNSUBSCRIBED' END, repeat('x', 1500), 1, '\\x00'",
)  # fmt: skip
SALES_FILTERS = {
    "type": ["RETURN"],
    "currency": ["GBP", "CHF"],
    "store_id": [STORE],
    "external_id": ["S-7"],
    "profile_id": ["ada"],
    "created_from": [NOW.isoformat(), (NOW - timedelta(hours=2)).isoformat()],
    "created_to": [START.isoformat(), NOW.isoformat()],
    "occurred_from": [(START + timedelta(days=1)).isoformat()],
    "occurred_to": [(START + timedelta(days=27)).isoformat()],
    "updated_from": [START.isoformat(), (NOW - timedelta(minutes=1)).isoformat()],
}


@pytest.fixture
async def shop(database_url: str, organization_id) -> Any:
    """An organization on a database with one session, whose rows were never analyzed."""
    database = Database(database_url, pool_max=1)
    await database.open()
    desk = Desk(database, organization_id)
    await desk.open_store(STORE, "S-2")
    yield desk
    await database.close()


async def store_sales(shop: Desk) -> None:
    stores = [store for (store,) in await shop.rows("SELECT id FROM stores WHERE organization_id = %s")]
    async with shop.database.transaction() as tx:
        [ada] = (await create_light_profiles(tx, shop.organization_id, ["ada"])).values()
    values = {
        "organization_id": shop.organization_id,
        "name": "S-",
        "count": ROWS,
        "width": 1500,
        "stores": stores,
        "profile": ada.id,
    }
    async with shop.database.transaction() as tx:
        await tx.execute("ALTER TABLE sales_events SET (autovacuum_enabled = off)")
        await tx.execute(insert_sales(SALE), {**values, "start": START, "now": NOW})
    for scope in (ALL_STORES, *stores):
        async with shop.database.transaction() as tx:
            await build_blocks(tx, shop.organization_id, scope)


def pairs(filters: dict[str, list[str]]) -> list[dict[str, str]]:
    """No filter, every filter with each of its values, and every pair."""
    single = [(name, value) for name, values in filters.items() for value in values]
    both = [(one, other) for one, other in itertools.combinations(single, 2) if one[0] != other[0]]
    return [{}, *(dict([item]) for item in single), *(dict(pair) for pair in both)]


async def count(shop: Desk, read: Callable[[Tx], Awaitable[Any]]) -> int:
    _, pages = await count_pages(shop.database, read)
    return pages


async def test_no_filter_of_sales_reads_all_of_them(shop):
    listed = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]["/v1/sales-events"]["get"]["parameters"]
    assert {parameter["name"] for parameter in listed} == {*SALES_FILTERS, "limit", "cursor"}
    await store_sales(shop)
    read = {}
    for filters in pairs(SALES_FILTERS):
        query = {**filters, "limit": "20"}
        for page in ("first", "later"):
            (_, has_more, cursor), pages = await count_pages(
                shop.database,
                lambda tx, query=query: list_sales(tx, shop.organization_id, query, secret=b"s"),
            )
            read[page, *filters.items()] = pages
            if not has_more:
                break
            query = {**query, "cursor": cursor}
    assert {filters: pages for filters, pages in read.items() if pages > PAGES_MAX} == {}


@pytest.mark.parametrize("status", [None, Status.SUBSCRIBED, Status.UNSUBSCRIBED])
async def test_no_filter_of_subscriptions_or_profiles_reads_all_of_them(shop, status):
    values = {"organization_id": shop.organization_id, "start": START, "count": ROWS}
    async with shop.database.transaction() as tx:
        await tx.execute("ALTER TABLE subscriptions SET (autovacuum_enabled = off)")
        await tx.execute(SUBSCRIPTIONS if status else PROFILES, values)
    for since in (None, ChangePosition(START + timedelta(days=26), shop.organization_id, NOW)):
        if status is None:
            read = partial(list_profiles, external_id=None, phone_number=None)
        else:
            read = partial(list_subscriptions, secret=b"s", status=status)
        pages = await count(shop, partial(read, organization_id=shop.organization_id, since=since, limit=21))
        assert pages < PAGES_MAX, (status, since)
