"""Measures how a worker handles a backlog of sales, with a live journey, a webhook endpoint, then the first segment.

ANALYZE never ran, as in a database that is a minute old: the plans must not depend on statistics.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import psycopg

from bulk import prepare
from database import Cluster, make_templates
from journeys import DEFINITION
from processes import cpu_s
from regulars.journeys.definition import read_definition as read_journey
from regulars.journeys.manage import activate, create_journey
from regulars.kit.db import Database
from regulars.segments.definition import read_definition as read_segment
from regulars.segments.saved.manage import create_segment
from webhooks import prepare as prepare_endpoint
from webhooks import receiver, worker

DATABASE = "bench_backlog"
SALES = 150_000
QUICK_SALES = 3_000
EVENTS = 5_000
QUICK_EVENTS = 200
DRAIN_S_MAX = 900.0
SEGMENT = {"name": "Buyers", "match": {"type": "all", "of": [{"type": "bought"}]}}
NEVER_ANALYZED = ("sales_events", "outbox", "outbox_retries", "segment_fed", "journey_runs")
# One fact per sale, as single requests record them; the customers rotate.
FILL = """
WITH made AS (
    SELECT pg_temp.id_at((extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS id, n,
           (ARRAY(SELECT id FROM stores WHERE organization_id = %(organization_id)s))[1 + n %% 20] AS store_id,
           (ARRAY(SELECT id FROM profiles WHERE organization_id = %(organization_id)s LIMIT 10000))[1 + n %% 10000]
               AS profile_id
    FROM generate_series(1, %(sales)s) AS n
), told AS (
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
    SELECT %(organization_id)s, gen_random_uuid(), 'sales.recorded',
           json_build_array(json_build_object('sales', json_build_array(id))), now(), now()
    FROM made
)
INSERT INTO sales_events (organization_id, id, external_id, type, occurred_at, store_id, profile_id, currency,
                          total_amount_cents, total_discount_cents, line_items, created_at)
SELECT %(organization_id)s, id, 'B' || n, 'PURCHASE', now(), store_id, profile_id, 'EUR', 1990, 0, '[]', now()
FROM made
"""
LEFT = """
SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM outbox_retries),
       (SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'),
       (SELECT count(*) FROM journey_runs WHERE waits_for = 'time'),
       (SELECT state FROM segment_columns)
"""

Say = Callable[[str], None]


@dataclass(frozen=True)
class BacklogTimes:
    """`facts_s`: all facts were handled. `all_s`: the segment was counted and the last event delivered."""

    sales: int
    events: int
    runs: int
    facts_s: float
    all_s: float
    sales_per_s: float
    cpu_us: float


def measure(cluster: Cluster, say: Say, *, is_quick: bool) -> BacklogTimes:
    organization = make_templates(cluster)[0]
    sales, events = (QUICK_SALES, QUICK_EVENTS) if is_quick else (SALES, EVENTS)
    url = cluster.clone(DATABASE)
    say(f"{sales:,} sales and {events:,} events wait")
    with receiver() as (address, _):
        asyncio.run(prepare_endpoint(url, organization, address, endpoints=1, profiles=events))
        asyncio.run(_begin(url, UUID(organization.id), sales))
        before = cpu_s(cluster.postmaster_pid)
        with worker(url) as pid, psycopg.connect(url, autocommit=True) as connection:
            started = time.monotonic()
            facts_s = runs = 0.0
            while True:
                outbox, retries, delivered, runs, state = connection.execute(LEFT).fetchone() or (1, 1, 0, 0, "")
                took = time.monotonic() - started
                if not facts_s and not outbox and not retries:
                    facts_s = took
                if facts_s and delivered >= events and state == "ready":
                    break
                if took > DRAIN_S_MAX:
                    raise TimeoutError(f"After {took:.0f} s: {outbox=} {retries=} {delivered=} {runs=} {state=}")
                time.sleep(0.5)
            used = cpu_s(pid) + cpu_s(cluster.postmaster_pid) - before
    return BacklogTimes(sales, events, int(runs), facts_s, took, sales / facts_s, 1e6 * used / sales)


def show(times: BacklogTimes, say: Say) -> None:
    say(
        f"{times.sales:,} waiting sales with a live journey, an endpoint and the first segment: no fact waited after"
        f" {times.facts_s:.0f} s ({times.sales_per_s:,.0f}/s, {times.cpu_us:.0f} µs each), everything was done after"
        f" {times.all_s:.0f} s; {times.runs:,} runs, {times.events:,} events"
    )


def as_json(times: BacklogTimes) -> dict[str, Any]:
    return asdict(times)


async def _begin(url: str, organization_id: UUID, sales: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        prepare(connection)
        for table in NEVER_ANALYZED:
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
        await _make(url, organization_id)
        connection.execute(FILL, {"organization_id": organization_id, "sales": sales})
    database = Database(url, pool_max=2)
    async with database.transaction() as tx:
        await create_segment(tx, organization_id, read_segment(json.dumps(SEGMENT).encode()))
    await database.close()


async def _make(url: str, organization_id: UUID) -> None:
    database = Database(url, pool_max=2)
    async with database.transaction() as tx:
        journey = await create_journey(tx, organization_id, read_journey(json.dumps(DEFINITION).encode()))
        await activate(tx, organization_id, journey.row.id)
    await database.close()
