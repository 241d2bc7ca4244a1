"""Measures analytics: the first build of the columns, pages with totals, queries of the analysis process, and the same
queries in plain PostgreSQL.

The data is one organization with 40 stores and two years of sales, a third of them without a customer.
"""

import asyncio
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from analytics_rows import ORGANIZATION_ZONE, PLAIN, STORES, vacuum, write_rows
from database import Cluster
from processes import cpu_s
from regulars.analytics import period as periods
from regulars.analytics.figures import read_totals
from regulars.analytics.query import DIMENSIONS, STORE, Query
from regulars.columns import lifecycle
from regulars.columns.client import Analysis, running
from regulars.columns.engine.compaction import compact
from regulars.columns.feed.build import run_batch
from regulars.columns.protocol import SegmentQuery
from regulars.columns.questions import (
    BasketQuestion,
    CohortsQuestion,
    CustomersQuestion,
    Dimension,
    Period,
    ProductGroup,
    ProductKey,
    ProductsQuestion,
    QuestionOf,
    RfmQuestion,
    SalesQuestion,
)
from regulars.conditions import tree
from regulars.kit.db import Database
from regulars.kit.migrate import migrate
from regulars.kit.process import reduce_garbage_collection
from regulars.kit.settings import Settings
from regulars.organizations.manage import create_organization
from regulars.sales.totals.fill import fill_batch, recount
from segments import analysis_cpu_s, analysis_memory_mib

DATABASE = "bench_analytics"
CUSTOMERS, SALES = 1_000_000, 10_000_000
QUICK_SCALE = 0.002
DAYS = 730
REPEATS = 5
DEADLINE_S = 60.0
Say = Callable[[str], None]


@dataclass
class AnalyticsTimes:
    customers: int
    sales: int
    build_s: float = 0.0
    # Processor time of the worker, the analysis process and the database.
    build_us: float = 0.0
    bytes_per_sale: float = 0.0
    totals_ms: dict[str, float] = field(default_factory=dict)
    totals_cpu_ms: dict[str, float] = field(default_factory=dict)
    warm_ms: dict[str, float] = field(default_factory=dict)
    warm_cpu_ms: dict[str, float] = field(default_factory=dict)
    # The first query after a restart of the analysis process, without the restart.
    cold_s: dict[str, float] = field(default_factory=dict)
    plain_s: dict[str, float] = field(default_factory=dict)
    memory_mib: float = 0.0


def measure(cluster: Cluster, say: Say, *, is_quick: bool, scale: float = 1.0) -> AnalyticsTimes:
    scale = QUICK_SCALE if is_quick else scale
    times = AnalyticsTimes(int(CUSTOMERS * scale), int(SALES * scale))
    with new_database(cluster, DATABASE) as settings:
        asyncio.run(_measure(cluster, settings, times, say))
    return times


@contextlib.contextmanager
def new_database(cluster: Cluster, name: str) -> Iterator[Settings]:
    """Creates an empty database and the settings for processes that use it."""
    cluster.drop(name)
    cluster.execute(f"CREATE DATABASE {name}")
    url = cluster.url_of(name)
    migrate(url)
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "DATABASE_URL": url,
            "REGULARS_DATA_DIR": folder,
            "REGULARS_SECRET_KEY": "k" * 40,
            "REGULARS_LOG_LEVEL": "warning",
        }
        os.environ |= environment
        try:
            yield Settings(data_dir=Path(folder), database_url=url)
        finally:
            for variable in environment:
                del os.environ[variable]


def show(times: AnalyticsTimes, say: Say) -> None:
    say(f"{times.customers:,} customers; {times.sales:,} sales in {STORES} stores, a third of them without a customer")
    say(f"  first build: {times.build_s:.0f} s, {times.build_us:.1f} µs of processor time a sale")
    say(f"  columns on disk: {times.bytes_per_sale:.1f} bytes a sale")
    for name, taken in times.totals_ms.items():
        say(f"  totals, {name}: {taken:.0f} ms (bar: 100), {times.totals_cpu_ms[name]:.0f} ms of processor time")
    for name, taken in times.warm_ms.items():
        plain = f"; plain PostgreSQL {times.plain_s[name]:.1f} s" if name in times.plain_s else ""
        say(
            f"  {name}: {taken:.0f} ms warm (bar: 500), {times.warm_cpu_ms[name]:.0f} ms of processor time;"
            f" {times.cold_s[name]:.2f} s first after a restart (bar: 3){plain}"
        )
    say(f"  memory of the analysis process: {times.memory_mib:,.0f} MiB at most (bar: 1,536)")


def as_json(times: AnalyticsTimes) -> dict[str, Any]:
    return asdict(times)


async def _measure(cluster: Cluster, settings: Settings, times: AnalyticsTimes, say: Say) -> None:
    database = Database(cluster.url_of(DATABASE), pool_max=4, statement_timeout_ms=3_600_000)
    await database.open()
    try:
        async with database.connection() as connection:
            organization = await create_organization(connection, "Analytics")
        started = time.monotonic()
        await write_rows(database, organization.id, customers=times.customers, sales=times.sales, days=DAYS)
        say(f"{times.sales:,} sales are in rows ({time.monotonic() - started:.0f} s)")
        await _measure_build(cluster, database, organization.id, times)
        say(f"the columns are built ({times.build_s:.0f} s, {times.build_us:.1f} µs a sale)")
        await _measure_totals(cluster, database, organization.id, times)
        for name, taken in times.totals_ms.items():
            say(f"totals, {name}: {taken:.0f} ms")
        await _compare(database, settings, organization.id)
        await _measure_queries(settings, organization.id, times, say)
        await _measure_plain(database, organization.id, times, say)
    finally:
        await database.close()


async def _measure_build(cluster: Cluster, database: Database, organization_id: UUID, times: AnalyticsTimes) -> None:
    """Alternates the worker's batches and the analysis process's merges in this process."""
    reduce_garbage_collection()
    started, cpu = time.monotonic(), time.process_time() + cpu_s(cluster.postmaster_pid)
    await build_columns(database, organization_id)
    times.build_s = time.monotonic() - started
    times.build_us = 1e6 * (time.process_time() + cpu_s(cluster.postmaster_pid) - cpu) / times.sales
    async with database.transaction() as tx:
        [(size,)] = await tx.fetch(
            "SELECT sum(bytes)::bigint FROM segment_runs"
            " WHERE organization_id = %s AND is_live AND kind IN ('sales', 'anonymous')",
            (organization_id,),
        )
    times.bytes_per_sale = size / times.sales


async def build_columns(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        await lifecycle.need_columns(tx, organization_id)
    while True:
        if not await run_batch(database, organization_id):
            await asyncio.sleep(0.05)
        await compact(database, organization_id)
        async with database.transaction() as tx:
            progress = await lifecycle.find_build_progress(tx, organization_id)
        if progress is not None and progress.state == "ready":
            break
    while await compact(database, organization_id):
        pass


async def _measure_totals(cluster: Cluster, database: Database, organization_id: UUID, times: AnalyticsTimes) -> None:
    async with database.transaction() as tx:
        await recount(tx, organization_id)
    while await fill_batch(database, organization_id):
        pass
    await vacuum(database)
    last = datetime.now(UTC).date()
    first = last - timedelta(days=DAYS)

    async def read(by: str, _: int) -> None:
        query = Query(period=periods.Period(first, last), by=(DIMENSIONS[by][0],))
        async with database.reading() as tx:
            await read_totals(tx, organization_id, query)

    for by in ("day", "month", "store"):
        name = f"two years by {by}"
        cpu = time.process_time() + cpu_s(cluster.postmaster_pid)
        times.totals_ms[name] = await _median_ms(partial(read, by))
        times.totals_cpu_ms[name] = 1000 * (time.process_time() + cpu_s(cluster.postmaster_pid) - cpu) / REPEATS


async def _compare(database: Database, settings: Settings, organization_id: UUID) -> None:
    """Compares totals and columns for each store."""
    last = datetime.now(UTC).date()
    period = Period(last - timedelta(days=DAYS), last)
    async with database.reading() as tx:
        query = Query(period=periods.Period(period.first, last), by=(STORE,))
        totals = await read_totals(tx, organization_id, query)
    async with running(settings) as analysis:
        everyone = SegmentQuery(match=tree.All(of=()), zone=ORGANIZATION_ZONE, today=last)
        question = SalesQuestion(period=period, by=(STORE,))
        answer = await analysis.answer(organization_id, everyone, question, deadline_s=DEADLINE_S)
    if {str(store): found.sums for (store,), found in totals.rows.items()} != {
        row.keys[0]: row.sums for row in answer.rows
    }:
        raise AssertionError("The totals and the columns differ.")


def _queries(last: date) -> dict[str, QuestionOf[Any]]:
    """The queries cover the two years until today."""
    period = Period(last - timedelta(days=DAYS), last)
    year = Period(last - timedelta(days=364), last)
    product = ProductKey()
    return {
        "sales by day": SalesQuestion(period=period, by=(DIMENSIONS["day"][0],)),
        "sales by store": SalesQuestion(period=period, by=(STORE,)),
        # The dearest questions that Explore allows: lines with their distinct customers, and tickets with theirs.
        "collections by week": SalesQuestion(
            period=period,
            by=(Dimension("property", "collection"), Dimension("week")),
            lines_in="EUR",
            with_customers=True,
        ),
        "new or known by day": SalesQuestion(
            period=period, by=(Dimension("newness"), Dimension("day")), with_customers=True
        ),
        "new and returning by month": CustomersQuestion(
            period=year,
            by="month",
            comparison=Period(year.first - timedelta(days=364), year.last - timedelta(days=364)),
        ),
        "cohorts": CohortsQuestion(period=period),
        "RFM": RfmQuestion(currency="EUR"),
        "products": ProductsQuestion(period=year, currency="EUR", by=product),
        "products by collection": ProductsQuestion(
            period=year, currency="EUR", by=ProductKey("property", "collection")
        ),
        "bought together": BasketQuestion(period=year, currency="EUR", filters=(ProductGroup(product, "value", "P7"),)),
    }


async def _measure_queries(settings: Settings, organization_id: UUID, times: AnalyticsTimes, say: Say) -> None:
    """Runs each query once after a restart, then all in one process, each time with another last day."""
    today = datetime.now(UTC).date()
    of_all = SegmentQuery(match=tree.All(of=()), zone=ORGANIZATION_ZONE, today=today)
    spent = tree.Spend(currency="EUR", at_least_cents=30_000, window=tree.Window(last_days=365))
    of_segment = SegmentQuery(match=tree.All(of=(spent,)), zone=ORGANIZATION_ZONE, today=today)

    def ask(analysis: Analysis, name: str, number: int) -> Awaitable[Any]:
        query = of_segment if name.endswith("of a segment") else of_all
        question = _queries(today - timedelta(days=number))[name.removesuffix(" of a segment")]
        return analysis.answer(organization_id, query, question, deadline_s=DEADLINE_S)

    names = [*_queries(today), "sales by day of a segment", "products of a segment"]
    for name in names:
        async with running(settings) as analysis:
            started = time.perf_counter()
            await ask(analysis, name, 0)
            times.cold_s[name] = time.perf_counter() - started
    async with running(settings) as analysis:
        for name in names:
            await ask(analysis, name, 0)
            before = analysis_cpu_s()
            times.warm_ms[name] = await _median_ms(partial(ask, analysis, name))
            times.warm_cpu_ms[name] = 1000 * (analysis_cpu_s() - before) / REPEATS
            say(f"{name}: {times.warm_ms[name]:.0f} ms warm, {times.cold_s[name]:.2f} s first")
        times.memory_mib = analysis_memory_mib()


async def _measure_plain(database: Database, organization_id: UUID, times: AnalyticsTimes, say: Say) -> None:
    last = datetime.now(UTC).date()
    for name, statement in PLAIN.items():
        started = time.perf_counter()
        async with database.transaction() as tx:
            await tx.fetch(
                statement,
                {
                    "organization_id": organization_id,
                    "zone": ORGANIZATION_ZONE,
                    "two_years_ago": last - timedelta(days=DAYS),
                    "year_ago": last - timedelta(days=364),
                },
            )
        times.plain_s[name] = time.perf_counter() - started
        say(f"{name} in plain PostgreSQL: {times.plain_s[name]:.1f} s")


async def _median_ms(act: Callable[[int], Awaitable[Any]]) -> float:
    taken = []
    for number in range(1, REPEATS + 1):
        started = time.perf_counter()
        await act(number)
        taken.append(1000 * (time.perf_counter() - started))
    return statistics.median(taken)
