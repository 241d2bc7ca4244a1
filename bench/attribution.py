"""Measures attribution: the lift of a campaign (a million recipients, ten million sales), credits of its texts, and
redirects of short links.

The rows are those of `analytics.py`. The campaign was sent 50 days ago, and a tenth of its recipients is held out.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

import redirects
from analytics import CUSTOMERS, DAYS, QUICK_SCALE, REPEATS, SALES, build_columns, new_database
from analytics_rows import vacuum, write_rows
from attribution_credits import CreditTimes, measure_credits, measure_recording, show_credits
from attribution_pages import AttributionPages, measure_pages, show_pages
from database import Cluster
from processes import cpu_s
from redirects import Redirects
from regulars.attribution.lift import LiftSource, LiftState, SourceKind, read_lifts, schedule_lift
from regulars.attribution.lift_queue import LiftQueue
from regulars.campaigns.definition import read_definition
from regulars.campaigns.manage import create_campaign
from regulars.columns.client import running
from regulars.kit.db import Database
from regulars.kit.ids import SEGMENT, new_uuid
from regulars.kit.settings import Settings
from regulars.organizations.manage import create_organization
from segments import analysis_cpu_s, analysis_memory_mib

DATABASE = "bench_attribution"
HOLDOUT_PERCENT = 10
FED_DAYS_AGO = 50
# Processor time of computing the lift of a campaign.
LIFT_CPU_S_MAX = 3.0
Say = Callable[[str], None]

_RECIPIENTS = """
INSERT INTO campaign_recipients (organization_id, campaign_id, profile_id, open_at, fed_at, created_at, position, arm,
                                 parts, outcome)
SELECT %(organization_id)s, %(campaign_id)s, id, it.at, CASE WHEN it.arm > 0 THEN it.at END, it.at, 1, it.arm, it.arm,
       CASE WHEN it.arm > 0 THEN 'delivered' ELSE 'held_out' END
FROM profiles
CROSS JOIN LATERAL (
    SELECT now() - make_interval(days => %(days)s) AS at,
           CASE WHEN get_byte(uuid_send(id), 3) * 100 < 256 * %(holdout)s THEN 0 ELSE 1 END AS arm
) AS it
WHERE organization_id = %(organization_id)s
"""
_ENDED = """
UPDATE campaigns SET state = 'ended', frozen_at = now() - make_interval(days => %(days)s), ended_at = now()
WHERE organization_id = %(organization_id)s AND id = %(campaign_id)s
"""


@dataclass
class AttributionTimes:
    customers: int
    sales: int
    recipients: int = 0
    held_out: int = 0
    buyers: int = 0
    # Processor time of worker, analysis process and database, for each run.
    lift_cpu_s: list[float] = field(default_factory=list)
    lift_s: list[float] = field(default_factory=list)
    lift_parts_s: dict[str, float] = field(default_factory=dict)
    # The first run after a start of the analysis process.
    cold_cpu_s: float = 0.0
    read_ms: float = 0.0
    memory_mib: float = 0.0
    redirects: Redirects | None = None
    pages: AttributionPages | None = None
    credits: CreditTimes = field(default_factory=CreditTimes)


def measure(cluster: Cluster, say: Say, *, is_quick: bool, scale: float = 1.0) -> AttributionTimes:
    scale = QUICK_SCALE if is_quick else scale
    times = AttributionTimes(int(CUSTOMERS * scale), int(SALES * scale))
    with new_database(cluster, DATABASE) as settings:
        asyncio.run(_measure(cluster, settings, times, say))
    times.credits.recording_us = measure_recording(cluster)
    times.redirects = redirects.measure(cluster, is_quick=is_quick)
    times.pages = measure_pages(cluster)
    return times


def show(times: AttributionTimes, say: Say) -> None:
    say(f"{times.customers:,} customers, {times.sales:,} sales")
    say(f"  lift of a campaign: {times.recipients:,} recipients, {times.held_out:,} held out, {times.buyers:,} buyers")
    parts = ", ".join(f"{name} {taken:.2f}" for name, taken in times.lift_parts_s.items())
    say(
        f"  {statistics.median(times.lift_cpu_s):.2f} s of processor time (bar"
        f" {LIFT_CPU_S_MAX:.0f}: {'reached' if _is_lift_reached(times) else 'MISSED'}): {parts};"
        f" {statistics.median(times.lift_s):.2f} s by the clock; {times.cold_cpu_s:.2f} s first after a start"
    )
    say(f"  reading the result: {times.read_ms:.1f} ms; memory of the analysis process: {times.memory_mib:,.0f} MiB")
    if times.redirects is not None:
        redirects.show(times.redirects, say)
    show_credits(times.credits, say)
    if times.pages is not None:
        show_pages(times.pages, say)


def is_reached(times: AttributionTimes) -> bool:
    return (
        _is_lift_reached(times)
        and times.credits.is_reached
        and (times.redirects is None or times.redirects.is_reached)
        and (times.pages is None or times.pages.is_reached)
    )


def _is_lift_reached(times: AttributionTimes) -> bool:
    return statistics.median(times.lift_cpu_s) <= LIFT_CPU_S_MAX


def as_json(times: AttributionTimes) -> dict[str, Any]:
    return asdict(times)


async def _measure(cluster: Cluster, settings: Settings, times: AttributionTimes, say: Say) -> None:
    database = Database(cluster.url_of(DATABASE), pool_max=4, statement_timeout_ms=3_600_000)
    await database.open()
    try:
        async with database.connection() as connection:
            organization_id = (await create_organization(connection, "Attribution")).id
        await write_rows(database, organization_id, customers=times.customers, sales=times.sales, days=DAYS)
        say(f"{times.sales:,} sales are in rows")
        await build_columns(database, organization_id)
        say("the columns are built")
        campaign_id = await _make_campaign(database, organization_id)
        await vacuum(database)
        async with running(settings) as analysis:
            queue = LiftQueue(analysis, database)
            await _measure_lift(cluster, database, queue, organization_id, times)
            await _read_result(database, organization_id, campaign_id, times)
        times.credits = await measure_credits(cluster, database, organization_id, campaign_id)
    finally:
        await database.close()


async def _make_campaign(database: Database, organization_id: UUID) -> UUID:
    given = {
        "name": "Spring",
        "include": [SEGMENT.encode(new_uuid())],
        "variants": [{"text": "Hello"}],
        "holdout_percent": HOLDOUT_PERCENT,
    }
    async with database.transaction() as tx:
        campaign = await create_campaign(tx, organization_id, read_definition(json.dumps(given).encode()))
        values = {
            "organization_id": organization_id,
            "campaign_id": campaign.row.id,
            "days": FED_DAYS_AGO,
            "holdout": HOLDOUT_PERCENT,
        }
        for statement in (_RECIPIENTS, _ENDED):
            await tx.execute(statement, values)
        source = LiftSource(SourceKind.CAMPAIGN, campaign.row.id)
        await schedule_lift(tx, organization_id, source, held_out_share=HOLDOUT_PERCENT / 100, window_days=7)
    return campaign.row.id


async def _measure_lift(
    cluster: Cluster, database: Database, queue: LiftQueue, organization_id: UUID, times: AttributionTimes
) -> None:
    """Computes the lift as the worker does, from claiming the row to storing the result."""
    for number in range(REPEATS + 1):
        async with database.transaction() as tx:
            await tx.execute(
                "UPDATE lifts SET due_at = now(), as_of = NULL, state = 'open' WHERE organization_id = %s",
                (organization_id,),
            )
        started, before = time.perf_counter(), _cpu_parts_s(cluster)
        await queue.run_pass(database, organization_id)
        await queue.finish()
        parts = {name: after - before[name] for name, after in _cpu_parts_s(cluster).items()}
        if number == 0:
            times.cold_cpu_s = sum(parts.values())
            continue
        times.lift_s.append(time.perf_counter() - started)
        times.lift_cpu_s.append(sum(parts.values()))
        times.lift_parts_s = parts


async def _read_result(database: Database, organization_id: UUID, campaign_id: UUID, times: AttributionTimes) -> None:
    started = time.perf_counter()
    async with database.reading() as tx:
        [lift] = await read_lifts(tx, organization_id, SourceKind.CAMPAIGN, [campaign_id])
    times.read_ms = 1000 * (time.perf_counter() - started)
    if lift.state is not LiftState.FINAL:
        raise AssertionError(f"The lift is not final: {lift}")
    times.recipients, times.held_out, times.buyers = lift.treated + lift.held_out, lift.held_out, lift.buyers
    times.memory_mib = analysis_memory_mib()


def _cpu_parts_s(cluster: Cluster) -> dict[str, float]:
    return {
        "worker": time.process_time(),
        "analysis process": analysis_cpu_s(),
        "database": cpu_s(cluster.postmaster_pid),
    }
