"""Measures campaigns of a large organization: counting and freezing an audience, finding home stores, estimating the
cost, and sending (`campaign_run.py`).

The columns are in the state after a build and its merges. Each audience is compared with a count from plain arrays.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

import campaign_run
from campaign_run import Line, RunTimes, measure_run
from campaign_shops import TEXT
from database import Cluster
from regulars.campaigns.definition import Definition as CampaignDefinition
from regulars.campaigns.estimate import estimate
from regulars.campaigns.exact_cost import CostQueue, find_exact_cost, request_exact_cost
from regulars.campaigns.manage import create_campaign
from regulars.columns.client import Analysis, running
from regulars.columns.model import MAY_BE_TEXTED
from regulars.columns.protocol import AudienceCounts, SegmentQuery
from regulars.conditions.tree import All, Bought, Condition, Created, When, Window
from regulars.experiments.arms import Variant
from regulars.kit.db import Database
from regulars.kit.ids import SEGMENT, new_uuid
from regulars.kit.migrate import migrate
from regulars.kit.settings import Settings
from regulars.organizations.manage import create_organization
from regulars.sales.home_stores import find_home_stores
from regulars.segments.audience import resolve_audience
from regulars.segments.definition import Definition
from regulars.segments.saved.manage import create_segment
from segment_columns import ColumnArrays, write_columns
from segments import analysis_cpu_s, analysis_memory_mib

DATABASE = "bench_campaigns"
CUSTOMERS, SALES = 1_000_000, 10_000_000
QUICK_SCALE = 0.02
HOME_CUSTOMERS, HOME_BATCH = 50_000, 256
REPEATS = 5
DEADLINE_S = 60.0
EXCLUDED_DAYS = 2
# Ten purchases per customer in the last year, in one of fifty stores; an id begins with its time.
HOME_SALES = """
INSERT INTO sales_events (organization_id, id, external_id, type, occurred_at, store_id, profile_id, currency,
                          total_amount_cents, total_discount_cents, line_items, created_at)
SELECT %(organization_id)s, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
           || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
       'T' || n, 'PURCHASE', at, ('00000000-0000-7000-8000-' || lpad((random() * 49)::integer::text, 12, '0'))::uuid,
       ('00000000-0000-7000-9000-' || lpad((n %% %(customers)s)::text, 12, '0'))::uuid, 'EUR', 100, 0, '[]', at
FROM generate_series(0, 10 * %(customers)s - 1) AS n,
     LATERAL (SELECT now() - n * interval '360 days' / (10 * %(customers)s) AS at) AS it
"""
HOME_STORES = """
INSERT INTO stores (organization_id, id, external_id, created_at, updated_at)
SELECT %(organization_id)s, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'S' || n, now(), now()
FROM generate_series(0, 49) AS n
"""
# The customers in the columns, each with a number that has consented.
PEOPLE = (
    """
    INSERT INTO profiles (organization_id, id, external_id, first_name, created_at, updated_at)
    SELECT %(organization_id)s, ('00000000-0000-7000-9000-' || lpad(n::text, 12, '0'))::uuid, 'P' || n,
           'Claire' || n %% 500, now(), now()
    FROM generate_series(0, %(customers)s - 1) AS n
    """,
    """
    INSERT INTO subscriptions (organization_id, id, number_hash, phone_number, profile_id, status, consented_at,
                               entry_count, last_hash, created_at, updated_at)
    SELECT %(organization_id)s, gen_random_uuid(), int8send(n), '+336' || lpad(n::text, 8, '0'),
           ('00000000-0000-7000-9000-' || lpad(n::text, 12, '0'))::uuid, 'SUBSCRIBED', now(), 1, '\\x00', now(), now()
    FROM generate_series(0, %(customers)s - 1) AS n
    """,
)
Say = Callable[[str], None]
Result = TypeVar("Result")


@dataclass
class CampaignTimes:
    customers: int
    sales: int
    count_ms: float = 0.0
    count_with_spend_ms: float = 0.0
    freeze_ms: float = 0.0
    freeze_cpu_ms: float = 0.0
    after_restart_s: float = 0.0
    after_restart_cpu_s: float = 0.0
    start_cpu_s: float = 0.0
    memory_mib: float = 0.0
    home_stores_ms: float = 0.0
    estimate_ms: float = 0.0
    exact_customers: int = 0
    exact_s: float = 0.0
    exact_cpu_s: float = 0.0
    run: RunTimes | None = None


def measure(cluster: Cluster, say: Say, *, is_quick: bool, scale: float = 1.0) -> CampaignTimes:
    cluster.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    cluster.execute(f"CREATE DATABASE {DATABASE}")
    url = cluster.url_of(DATABASE)
    migrate(url)
    scale = QUICK_SCALE if is_quick else scale
    times = CampaignTimes(int(CUSTOMERS * scale), int(SALES * scale))
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"DATABASE_URL": url, "REGULARS_DATA_DIR": folder, "REGULARS_SECRET_KEY": "k" * 40}
        asyncio.run(_measure(url, Path(folder), times, say))
        for name in ("DATABASE_URL", "REGULARS_DATA_DIR", "REGULARS_SECRET_KEY"):
            del os.environ[name]
    times.run = measure_run(cluster, say, is_quick=is_quick, scale=scale)
    return times


def show(times: CampaignTimes, say: Say) -> None:
    beside = "" if times.run is None else f"; the run beside {times.run.load_per_s:.0f} sales a second"
    say(f"An audience of {times.customers:,} customers, {times.sales:,} sales{beside}")
    found = [*_lines(times), *([] if times.run is None else campaign_run.lines(times.run))]
    for line in found:
        verdict = "" if not line.bar else "reached" if line.is_reached else "MISSED"
        say(f"  {line.label:<46}{line.figure:>16}   {line.bar and 'bar: ' + line.bar:<18}{verdict}")
    say(f"{sum(not line.is_reached for line in found)} of {sum(bool(line.bar) for line in found)} bars are missed.")


def _lines(times: CampaignTimes) -> list[Line]:
    return [
        Line("count the audience", f"{times.count_ms:.0f} ms", "300 ms", times.count_ms <= 300),
        Line("  with its spend", f"{times.count_with_spend_ms:.0f} ms"),
        Line("freeze it", f"{times.freeze_ms:.0f} ms", "1,000 ms", times.freeze_ms <= 1_000),
        Line("  processor time", f"{times.freeze_cpu_ms:.0f} ms", "1,000 ms", times.freeze_cpu_ms <= 1_000),
        Line("  first after a restart", f"{times.after_restart_s:.2f} s", "5 s", times.after_restart_s <= 5),
        Line("  processor time of it", f"{times.after_restart_cpu_s:.2f} s", "3 s", times.after_restart_cpu_s <= 3),
        Line("  and for the start of the process", f"{times.start_cpu_s:.2f} s"),
        Line("  memory of the analysis process", f"{times.memory_mib:,.0f} MiB"),
        Line(
            f"home stores of {HOME_BATCH} customers",
            f"{times.home_stores_ms:.1f} ms",
            "20 ms",
            times.home_stores_ms <= 20,
        ),
        Line("cost, estimated", f"{times.estimate_ms:.0f} ms", "300 ms", times.estimate_ms <= 300),
        Line(f"  exact of {times.exact_customers:,} recipients", f"{times.exact_s:.1f} s", "60 s", times.exact_s <= 60),
        Line("  processor time of it", f"{times.exact_cpu_s:.1f} s", "60 s", times.exact_cpu_s <= 60),
    ]


def as_json(times: CampaignTimes) -> dict[str, Any]:
    return asdict(times)


async def _measure(url: str, folder: Path, times: CampaignTimes, say: Say) -> None:
    database = Database(url, pool_max=4, statement_timeout_ms=600_000)
    await database.open()
    try:
        async with database.connection() as connection:
            organization_id = (await create_organization(connection, "Large")).id
        times.home_stores_ms = await _home_stores_ms(database, organization_id)
        say(f"home stores: {times.home_stores_ms:.1f} ms")
        async with database.transaction() as tx:
            for statement in PEOPLE:
                await tx.execute(statement, {"organization_id": organization_id, "customers": times.customers})
        async with database.connection() as connection:
            await connection.execute("VACUUM ANALYZE profiles, subscriptions")
        big = await write_columns(database, organization_id, customers=times.customers, sales=times.sales)
        query, campaign = await _query(database, organization_id)
        settings = Settings(data_dir=folder, database_url=url)
        async with running(settings) as analysis:
            times.start_cpu_s = analysis_cpu_s()
            times.after_restart_s, counts = await _timed(_freeze(analysis, organization_id, query))
            times.after_restart_cpu_s = analysis_cpu_s() - times.start_cpu_s
            _check(big, counts)
            before = analysis_cpu_s()
            times.freeze_ms = await _median_ms(lambda: _freeze(analysis, organization_id, query))
            times.freeze_cpu_ms = 1000 * (analysis_cpu_s() - before) / REPEATS
            times.count_ms = await _median_ms(
                lambda: analysis.count_audience(organization_id, query, deadline_s=DEADLINE_S)
            )
            times.count_with_spend_ms = await _median_ms(
                lambda: analysis.count_audience(organization_id, query, with_spend=True, deadline_s=DEADLINE_S)
            )
            times.memory_mib = analysis_memory_mib()
            times.estimate_ms = await _median_ms(lambda: estimate(database, analysis, organization_id, campaign))
            await _measure_exact(database, analysis, organization_id, campaign, times)
    finally:
        await database.close()


async def _query(database: Database, organization_id: UUID) -> tuple[SegmentQuery, CampaignDefinition]:
    """Creates a segment of nearly all customers (known in the last ten years, no purchase in the last days) and a
    campaign to it."""
    conditions: dict[str, Condition] = {
        "Known": Created(when=When(comparison="in_last_days", days=3_650)),
        "Just bought": Bought(window=Window(last_days=EXCLUDED_DAYS)),
    }
    async with database.transaction() as tx:
        known, bought = [
            (await create_segment(tx, organization_id, Definition(name=name, match=All(of=(condition,))))).row.id
            for name, condition in conditions.items()
        ]
        campaign = CampaignDefinition(
            name="Sale",
            include=(SEGMENT.encode(known),),
            exclude=(SEGMENT.encode(bought),),
            variants=(Variant(text=TEXT),),
        )
        return await resolve_audience(tx, organization_id, include=[known], exclude=[bought]), campaign


async def _measure_exact(
    database: Database, analysis: Analysis, organization_id: UUID, campaign: CampaignDefinition, times: CampaignTimes
) -> None:
    """Runs the queue of the worker in this process."""
    async with database.transaction() as tx:
        campaign_id = (await create_campaign(tx, organization_id, campaign, created_by="ann")).row.id
        await request_exact_cost(tx, organization_id, campaign_id)
    queue = CostQueue(analysis, database)
    started, before = time.perf_counter(), time.process_time() + analysis_cpu_s()
    found = None
    while found is None or (found.completed_at is None and found.reason is None):
        await queue.run_pass(database, organization_id)
        await queue.finish()
        async with database.reading() as tx:
            found = await find_exact_cost(tx, organization_id, campaign_id)
    if found.size is None:
        raise AssertionError(f"not counted: {found.reason}")
    times.exact_customers, times.exact_s = found.rendered, time.perf_counter() - started
    times.exact_cpu_s = time.process_time() + analysis_cpu_s() - before


async def _freeze(analysis: Analysis, organization_id: UUID, query: SegmentQuery) -> AudienceCounts:
    """Reads all pages of the audience, as a worker does."""
    found, counts = 0, None
    async for piece in analysis.stream_audience(organization_id, query, deadline_s=DEADLINE_S):
        found += len(piece.profile_ids) // 16
        counts = counts or piece.counts
    if counts is None or found != counts.total:
        raise AssertionError(f"{found} ids, and not {counts}")
    return counts


def _check(big: ColumnArrays, counts: AudienceCounts) -> None:
    """The same counts from the arrays, without any of the code that is measured."""
    recent = (big.day > (big.today.toordinal() - 719_163) - EXCLUDED_DAYS) & ~big.kind
    members = np.bincount(big.customer[recent], minlength=big.customers) == 0
    wanted = int(members.sum()), int((members & (big.consent == MAY_BE_TEXTED)).sum())
    if (counts.total, counts.split.may_be_texted) != wanted:
        raise AssertionError(f"{counts}, and not {wanted}")


async def _home_stores_ms(database: Database, organization_id: UUID) -> float:
    given = {"organization_id": organization_id, "customers": HOME_CUSTOMERS}
    async with database.transaction() as tx:
        await tx.execute(HOME_STORES, given)
        await tx.execute(HOME_SALES, given)
    async with database.connection() as connection:
        await connection.execute("VACUUM ANALYZE sales_events")
    taken = []
    for first in range(0, 20 * HOME_BATCH, HOME_BATCH):
        ids = [UUID(f"00000000-0000-7000-9000-{number:012}") for number in range(first, first + HOME_BATCH - 1)]
        async with database.reading() as tx:
            started = time.perf_counter()
            found = await find_home_stores(tx, organization_id, [*ids, new_uuid()])
            taken.append(time.perf_counter() - started)
        if len(found) != len(ids):
            raise AssertionError(f"{len(found)} home stores of {len(ids)} customers")
    return 1000 * statistics.median(taken)


async def _timed(result: Awaitable[Result]) -> tuple[float, Result]:
    started = time.perf_counter()
    found = await result
    return time.perf_counter() - started, found


async def _median_ms(measured: Callable[[], Awaitable[Any]]) -> float:
    return 1000 * statistics.median([(await _timed(measured()))[0] for _ in range(REPEATS)])
