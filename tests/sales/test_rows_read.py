"""No filter of a list of the API reads the whole table, also one that was never analyzed."""

import itertools
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from tests.sales.desk import STORE, Desk
from tests.support.database import new_database
from tests.support.many_sales import insert_sales
from tests.support.pages_read import count_pages
from tests.support.project import ROOT

from regulars.consent.find import list_subscriptions
from regulars.consent.model import Status
from regulars.kit.changes import ChangePosition
from regulars.kit.db import Database
from regulars.kit.keyset import PageRequest
from regulars.profiles.find import list_profiles
from regulars.profiles.write import create_light_profiles
from regulars.sales.blocks.build import build_blocks
from regulars.sales.blocks.order import ALL_STORES
from regulars.sales.listing import list_sales
from regulars.webhooks.model import ROWS_SCANNED_MAX, DeliveryFilter
from regulars.webhooks.queries.lists import list_deliveries

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
PROFILES = PEOPLE.replace("{table}", "profiles").replace("{columns}", "external_id, phone_number, attributes").replace(
    "{values}", "'P-' || n, '+3360' || lpad(n::text, 7, '0'), jsonb_build_object('a', repeat('x', 1500))"
)  # fmt: skip
# Those who are subscribed come last, in both orders.
SUBSCRIPTIONS = PEOPLE.replace("{table}", "subscriptions").replace(
    "{columns}", "number_hash, profile_id, status, source_text, entry_count, last_hash"
).replace(
    "{values}",
    "decode(lpad(to_hex(n), 64, '0'), 'hex'), CASE WHEN n %% 1000 = 3 THEN %(ada)s::uuid END, CASE WHEN n > 19990 OR n * 7919 %% %(count)s > 19990 THEN 'SUBSCRIBED'"
    " ELSE 'UNSUBSCRIBED' END, repeat('x', 1500), 1, '\\x00'",
)  # fmt: skip
# The deliveries that failed, and the messages of the second type, are the oldest ones.
MESSAGES = """
INSERT INTO webhook_messages (organization_id, id, type, body, created_at)
SELECT %(organization_id)s, (lpad(to_hex(n), 32, '0'))::uuid, CASE WHEN n < 30 THEN 'c.d' ELSE 'a.b' END,
       repeat('x', 1500), %(start)s
FROM generate_series(1, %(count)s) AS numbers (n)
"""
DELIVERIES = """
INSERT INTO webhook_deliveries (organization_id, id, endpoint_id, message_id, state, created_at)
SELECT organization_id, id, %(endpoint)s, id, CASE WHEN type = 'c.d' THEN 'failed' ELSE 'delivered' END, created_at
FROM webhook_messages
"""
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
async def shop(shared_database: tuple[str, str], organization_id) -> Any:
    """An organization on a database with one session, none of whose tables was analyzed while it had other rows."""
    url, template = shared_database
    with new_database(url, template=template) as fresh:
        database = Database(fresh, pool_max=1)
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


def filter_names(path: str) -> set[str]:
    listed = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"][path]["get"]["parameters"]
    return {parameter["name"] for parameter in listed}


def pairs(filters: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """No filter, every filter with each of its values, and every pair."""
    single = [(name, value) for name, values in filters.items() for value in values]
    both = [(one, other) for one, other in itertools.combinations(single, 2) if one[0] != other[0]]
    return [{}, *(dict([item]) for item in single), *(dict(pair) for pair in both)]


async def test_no_filter_of_sales_reads_all_of_them(shop):
    assert filter_names("/v1/sales-events") == {*SALES_FILTERS, "limit", "cursor"}
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


async def test_no_filter_of_profiles_or_subscriptions_reads_all_of_them(shop):
    values = {"organization_id": shop.organization_id, "start": START, "count": ROWS}
    async with shop.database.transaction() as tx:
        [ada] = (await create_light_profiles(tx, shop.organization_id, ["ada"])).values()
        for table, statement in (("profiles", PROFILES), ("subscriptions", SUBSCRIPTIONS)):
            await tx.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
            await tx.execute(statement, {**values, "ada": ada.id})
    since = ChangePosition(START + timedelta(days=1), shop.organization_id, NOW)
    lists = {
        "profiles": (
            partial(list_profiles, external_id=None, phone_number=None),
            {"external_id": ["P-7"], "phone_number": ["+33600000007"], "updated_from": [since]},
        ),
        "subscriptions": (
            partial(list_subscriptions, secret=b"s"),
            {"phone_number": ["+33600000007"], "profile_id": [ada.id], "status": list(Status), "updated_from": [since]},
        ),
    }
    read = {}
    for name, (find, filters) in lists.items():
        assert filter_names(f"/v1/{name}") == {*filters, "limit", "cursor"}
        for query in pairs(filters):
            given = {"since" if key == "updated_from" else key: value for key, value in query.items()}
            for page in ("first", "later"):
                act = partial(find, organization_id=shop.organization_id, limit=21, **given)
                found, pages = await count_pages(shop.database, act)
                read[name, page, *query] = pages
                if not found:
                    break
                is_by_change = "since" in given
                given |= (
                    {"since": ChangePosition(found[-1].updated_at, found[-1].id, NOW)}
                    if is_by_change
                    else {"after": found[-1].id}
                )
    assert {filters: pages for filters, pages in read.items() if pages > PAGES_MAX} == {}


async def test_no_filter_of_deliveries_reads_all_of_them(shop):
    """Deliveries have no list in the API. A page searches a limited number of them, and says so. Their type is in their
    message, whose row takes four pages to find."""
    values = {"organization_id": shop.organization_id, "start": START, "count": ROWS, "endpoint": shop.organization_id}
    async with shop.database.transaction() as tx:
        for statement in (MESSAGES, DELIVERIES):
            await tx.execute(statement, values)
    filters = {"endpoint_id": [shop.organization_id], "state": ["failed", "delivered"], "type": ["a.b", "c.d"]}
    assert set(filters) == set(DeliveryFilter._fields)
    read = {}
    for query in pairs(filters):
        page = PageRequest(limit=21)
        act = partial(list_deliveries, organization_id=shop.organization_id, filters=DeliveryFilter(**query), page=page)
        _, read[tuple(query.items())] = await count_pages(shop.database, act)
    of_type = {filters: read.pop(filters) for filters in list(read) if "type" in dict(filters)}
    assert {filters: pages for filters, pages in read.items() if pages > PAGES_MAX} == {}
    assert max(of_type.values()) < 4 * ROWS_SCANNED_MAX
