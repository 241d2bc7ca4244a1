"""Counts the pages of 8 kB that a page of `GET /v1/sales-events` reads, for every filter and every pair of filters.

The organization has ten million sales, of which the last million was imported within the last hour: an id does not say
more exactly when a sale was created, so a list by `created_from` may not trust ids alone."""

import asyncio
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.many_sales import insert_sales
from tests.support.pages_read import count_pages

from bulk import prepare, without_indexes
from database import Cluster
from regulars.kit.db import Database
from regulars.kit.errors import Unavailable
from regulars.kit.migrate import migrate
from regulars.organizations.manage import create_organization
from regulars.sales.blocks.build import build_blocks
from regulars.sales.blocks.order import ALL_STORES
from regulars.sales.listing import list_sales
from regulars.stores.model import StoreUpsert
from regulars.stores.upsert import upsert_stores

SALES: Final = 10_000_000
QUICK_SCALE: Final = 0.02
STORES: Final = 100
IMPORTED: Final = 0.1
PAGES_MAX: Final = 5_000
DATABASE: Final = "bench_lists"
SECRET: Final = b"bench"

# Two years of sales, the last tenth of them imported within the last hour. Returns are few and late, those of one store
# one. Pounds occur in the middle of the time, francs never.
SALE: Final = """
    (%(stores)s::uuid[])[1 + n %% array_length(%(stores)s::uuid[], 1)] AS store_id, NULL::uuid AS profile_id,
    %(start)s::timestamptz + n * %(step)s::interval AS occurred_at,
    CASE WHEN n < %(imported_from)s THEN %(start)s::timestamptz + n * %(step)s::interval
         ELSE %(now)s::timestamptz - interval '1 hour'
              + (n - %(imported_from)s) * (interval '1 hour' / (%(count)s - %(imported_from)s)) END AS created_at,
    CASE WHEN n > %(imported_from)s AND n %% (%(count)s / 50) = 7 THEN 'RETURN' ELSE 'PURCHASE' END AS type,
    CASE WHEN n BETWEEN %(count)s / 2 AND %(count)s / 2 + 99 THEN 'GBP' ELSE 'EUR' END AS currency
"""

Say = Callable[[str], None]


@dataclass
class PagesRead:
    sales: int
    # The pages of 8 kB of the first and of a later page of the list, by the filters; None if the request was refused.
    pages: dict[str, list[int | None]] = field(default_factory=dict)


def measure(cluster: Cluster, say: Say, *, is_quick: bool, scale: float = 1.0) -> PagesRead:
    count = int(SALES * (QUICK_SCALE if is_quick else scale))
    cluster.execute(f"CREATE DATABASE {DATABASE}")
    url = cluster.url_of(DATABASE)
    migrate(url)
    return asyncio.run(_measure(url, say, count))


async def _measure(url: str, say: Say, count: int) -> PagesRead:
    database = Database(url, pool_max=1)
    await database.open()
    try:
        now = datetime.now(UTC)
        organization_id = await _fill(database, url, count, now)
        say(f"{count:,} sales stored")
        await _build(database, organization_id)
        say("Blocks built")
        read = PagesRead(count)
        for filters in _filters(now):
            read.pages[" ".join(f"{name}={value}" for name, value in filters.items())] = await _count_pages(
                database, organization_id, filters
            )
        return read
    finally:
        await database.close()


async def _fill(database: Database, url: str, count: int, now: datetime) -> UUID:
    async with database.transaction() as tx:
        organization_id = (await create_organization(tx.connection, "Lists")).id
        stores = await upsert_stores(
            tx, organization_id, [StoreUpsert(external_id=f"S-{number}") for number in range(STORES)]
        )
    values = {
        "organization_id": organization_id,
        "name": "T-",
        "count": count,
        "width": 0,
        "stores": [outcome.store.id for outcome in stores],
        "start": now - timedelta(days=730),
        "step": timedelta(days=729) / count,
        "imported_from": int(count * (1 - IMPORTED)),
        "now": now,
    }
    with psycopg.connect(url, autocommit=True) as connection:
        prepare(connection)
        with without_indexes(connection, ["sales_events"]):
            connection.execute(insert_sales(SALE), values)
    return organization_id


async def _build(database: Database, organization_id: UUID) -> None:
    async with database.reading() as tx:
        stores = await tx.fetch_column("SELECT id FROM stores WHERE organization_id = %s", (organization_id,))
    for scope in (ALL_STORES, *stores):
        has_more = True
        while has_more:
            async with database.transaction() as tx:
                has_more = await build_blocks(tx, organization_id, scope)


def _filters(now: datetime) -> Iterator[dict[str, str]]:
    """Every filter with each of its values, and every pair."""
    values: dict[str, list[str]] = {
        "type": ["RETURN", "PURCHASE"],
        "currency": ["GBP", "CHF"],
        "store_id": ["S-7"],
        "created_from": [(now - timedelta(hours=3)).isoformat(), now.isoformat()],
        "created_to": [(now - timedelta(days=729)).isoformat(), (now - timedelta(hours=1)).isoformat()],
        "occurred_from": [(now - timedelta(days=700)).isoformat()],
        "occurred_to": [(now - timedelta(days=300)).isoformat()],
        "updated_from": [(now - timedelta(days=1)).isoformat(), (now - timedelta(days=700)).isoformat()],
    }
    yield {}
    single = [(name, value) for name, listed in values.items() for value in listed]
    for item in single:
        yield dict([item])
    for one, other in itertools.combinations(single, 2):
        if one[0] != other[0]:
            yield dict([one, other])


async def _count_pages(database: Database, organization_id: UUID, filters: Mapping[str, str]) -> list[int | None]:
    """The pages of 8 kB read for the first and the second page of the list."""
    pages: list[int | None] = []
    query = {**filters, "limit": "100"}
    for _ in range(2):
        read = partial(list_sales, organization_id=organization_id, query=query.copy(), secret=SECRET)
        try:
            (_, has_more, cursor), count = await count_pages(database, read)
        except Unavailable:
            return [*pages, None]
        pages.append(count)
        if not has_more or cursor is None:
            break
        query["cursor"] = cursor
    return pages


def show(read: PagesRead, say: Say) -> None:
    say(f"Pages of 8 kB read of {read.sales:,} sales; at most {PAGES_MAX:,} are allowed")
    for filters, pages in sorted(read.pages.items(), key=lambda item: -max(page or 0 for page in [0, *item[1]])):
        say(f"{', '.join('refused' if page is None else f'{page:,}' for page in pages):>20}  {filters}")


def is_reached(read: PagesRead) -> bool:
    return all(page is not None and page <= PAGES_MAX for pages in read.pages.values() for page in pages)


def as_json(read: PagesRead) -> dict[str, Any]:
    return asdict(read)
