"""Creates databases with many sales, with the bulk loader of the demo."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import psycopg

from database import AUTOVACUUM_OFF, Cluster, Organization
from regulars.demo.load import DemoPlan, load_demo
from regulars.kit.db import Database
from regulars.organizations.manage import find_secret_and_country

CUSTOMERS = 20_000
STATEMENT_TIMEOUT_MS = 3_600_000


def make_filled(cluster: Cluster, organization: Organization, sales: int, say: Callable[[str], None]) -> str:
    """Creates a database with many sales of one organization. Measurements share it, as copies would take too long."""
    name = f"bench_grown_{sales}"
    url = cluster.clone(name)
    started = datetime.now(UTC)
    asyncio.run(_fill(url, UUID(organization.id), sales))
    took_s = (datetime.now(UTC) - started).total_seconds()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute(AUTOVACUUM_OFF)
        connection.execute("CHECKPOINT")
    size_gb = cluster.size_bytes(name) / 1e9
    rate = f"{sales / took_s:,.0f}/s with customers and consents"
    say(f"loaded {sales:,} sales in {took_s:.0f} s ({rate}, {size_gb:.1f} GB)")
    return name


async def _fill(url: str, organization_id: UUID, sales: int) -> None:
    database = Database(url, pool_max=2, statement_timeout_ms=STATEMENT_TIMEOUT_MS)
    await database.open()
    try:
        async with database.connection() as connection:
            secret_and_country = await find_secret_and_country(connection, organization_id)
        story = DemoPlan(seed=1, sales=sales, customers=CUSTOMERS, last_day=datetime.now(UTC).date())
        await load_demo(database, organization_id, story, secret=secret_and_country.secret, progress=lambda *_: None)
    finally:
        await database.close()
