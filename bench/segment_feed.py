"""Measures feeding: the processor time and disk space per sale that goes through the API into the columns."""

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from database import Cluster
from processes import cpu_s
from regulars.columns import lifecycle
from regulars.columns.engine.compaction import compact
from regulars.columns.feed.build import run_batch
from regulars.kit.db import Database
from regulars.kit.ids import ByExternalId, new_uuid
from regulars.organizations.manage import create_organization
from regulars.sales.load import load_sales
from regulars.sales.model import Sale
from regulars.work.outbox import OutboxQueue
from regulars.worker import LISTENERS
from segment_columns import PRODUCTS, STORES, properties_of

LISTENER = {
    kind: {name: it for name, it in by.items() if name.startswith("segments.")} for kind, by in LISTENERS.items()
}

Say = Callable[[str], None]


class FeedTimes(NamedTuple):
    per_s: float
    us: float
    disk_ratio: float


async def measure_feeding(cluster: Cluster, url: str, say: Say, *, sales: int) -> FeedTimes:
    database = Database(url, pool_max=4, statement_timeout_ms=600_000)
    await database.open()
    try:
        async with database.connection() as connection:
            organization = await create_organization(connection, "Fed")
        stores, profiles = await _people(database, organization.id, sales // 10)
        async with database.transaction() as tx:
            await lifecycle.begin(tx, organization.id)
        while not await _is_ready(database, organization.id):
            if not await run_batch(database, organization.id):
                await asyncio.sleep(0.1)
        for first in range(0, sales, 20_000):
            async with database.transaction() as tx:
                some = _tickets(first, min(first + 20_000, sales), stores, profiles)
                await load_sales(tx, organization.id, some, stores=stores, profiles=profiles)
        queue = OutboxQueue(LISTENER)
        cpu = time.process_time() + cpu_s(cluster.postmaster_pid)
        started = time.perf_counter()
        while await queue.run_pass(database, organization.id):
            pass
        took = time.perf_counter() - started
        cpu = time.process_time() + cpu_s(cluster.postmaster_pid) - cpu
        per_s, us = sales / took, 1e6 * cpu / sales
        say(f"{sales:,} sales were fed in {took:.1f} s, {us:.0f} µs each")
        async with database.transaction() as tx:
            await tx.execute(
                "UPDATE segment_columns SET tidy_at = now() WHERE organization_id = %s", (organization.id,)
            )
        while await compact(database, organization.id):
            pass
        return FeedTimes(per_s, us, await _disk_ratio(database))
    finally:
        await database.close()


async def _is_ready(database: Database, organization_id: UUID) -> bool:
    async with database.transaction() as tx:
        progress = await lifecycle.find_build_progress(tx, organization_id)
    return progress is not None and progress.state == "ready"


async def _people(database: Database, organization_id: UUID, count: int) -> tuple[dict[Any, UUID], dict[Any, UUID]]:
    stores = {ByExternalId(f"S{number}"): new_uuid() for number in range(STORES)}
    profiles = {ByExternalId(f"C{number}"): new_uuid() for number in range(count)}
    async with database.transaction() as tx:
        for table, ids in (("stores", stores), ("profiles", profiles)):
            await tx.execute(
                f"INSERT INTO {table} (organization_id, id, external_id, created_at, updated_at)"  # noqa: S608  # names above
                " SELECT %s, it.id, it.name, now(), now() FROM unnest(%s::uuid[], %s::text[]) AS it (id, name)",
                (organization_id, list(ids.values()), [reference.external_id for reference in ids]),
            )
    return stores, profiles


def _tickets(first: int, last: int, stores: dict[Any, UUID], profiles: dict[Any, UUID]) -> list[Sale]:
    names, customers = list(stores), list(profiles)
    now = datetime.now(UTC)
    made = []
    for number in range(first, last):
        lines = [
            {
                "external_id": str(place),
                "product": {
                    "external_id": f"P{product}",
                    "name": f"Product {product}",
                    "properties": properties_of(product),
                },
                "quantity": 1 + place,
                "unit": None,
                "unit_price_cents": 1990,
                "total_price_cents": 1990 * (1 + place),
                "discount_cents": 0,
                "tax_cents": 331,
            }
            for place in range(1 + number % 3)
            for product in [(number * 7 + place) % PRODUCTS]
        ]
        made.append(
            Sale(
                external_id=str(uuid4()),
                type="RETURN" if number % 20 == 0 else "PURCHASE",
                occurred_at=now - timedelta(minutes=number % 500_000),
                store=names[number % len(names)],
                profile=customers[(number * 31) % len(customers)],
                currency="EUR",
                total_amount_cents=1990 * len(lines),
                total_discount_cents=0,
                total_tax_cents=331,
                source="till",
                payments=None,
                loyalty=None,
                metadata=None,
                line_items=json.dumps(lines).encode(),
            )
        )
    return made


async def _disk_ratio(database: Database) -> float:
    connection = await database.dial()
    async with connection:
        await connection.set_autocommit(True)
        for table in ("segment_blobs", "segment_runs", "segment_customers", "sales_events"):
            await connection.execute(f"VACUUM FULL {table}")
        rows = await connection.execute(
            "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS it (name)",
            (["segment_blobs", "segment_runs", "segment_customers", "segment_columns"],),
        )
        [ours] = await rows.fetchone() or (0,)
        rows = await connection.execute("SELECT pg_total_relation_size('sales_events')")
        [theirs] = await rows.fetchone() or (1,)
    return float(ours) / float(theirs)
