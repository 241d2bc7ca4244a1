"""Measures segments: the time of counting in a large organization, and the cost of feeding and of idle segments.

The columns of the large organization are in the state after a build and its merges; every count is compared with a
count from plain arrays. Feeding and disk space are measured with sales that go through the API.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from database import Cluster
from regulars.catalog.model import AttributeType
from regulars.columns.client import Analysis, running
from regulars.columns.column_rows import insert_blob, insert_run, list_runs, lock_state, update_state
from regulars.columns.model import MAY_BE_TEXTED, CustomerState, Run, pack_customers
from regulars.columns.protocol import SegmentCounts, SegmentQuery
from regulars.kit.db import Database
from regulars.kit.migrate import migrate
from regulars.kit.settings import Settings
from regulars.organizations.manage import create_organization
from regulars.segments.definition import read_definition
from segment_columns import COLLECTIONS, TIERS, ColumnArrays, balance_of, write_columns
from segment_feed import measure_feeding
from segment_idle import IDLE_ORGANIZATIONS, WITH_SEGMENTS, measure_idling
from segment_load import WITHOUT, LoadTimes, measure_under_load

DATABASE = "bench_segments"
CUSTOMERS, SALES = 1_000_000, 10_000_000
QUICK_CUSTOMERS, QUICK_SALES = 20_000, 200_000
FED_SALES, QUICK_FED_SALES = 200_000, 5_000
IDLE_S, QUICK_IDLE_S = 60.0, 5.0
REPEATS = 5
CHANGES_S = 40
DEADLINE_S = 60.0
Say = Callable[[str], None]


@dataclass
class SegmentTimes:
    customers: int
    sales: int
    warm_ms: dict[str, float] = field(default_factory=dict)
    warm_cpu_ms: dict[str, float] = field(default_factory=dict)
    edited_ms: float = 0.0
    edited_cpu_ms: float = 0.0
    after_restart_s: float = 0.0
    after_restart_cpu_s: float = 0.0
    memory_mib: float = 0.0
    distinct_first_s: float = 0.0
    distinct_first_cpu_s: float = 0.0
    distinct_again_ms: float = 0.0
    numbers_first_s: float = 0.0
    numbers_first_cpu_s: float = 0.0
    numbers_again_ms: float = 0.0
    numbers_beside_changes_ms: float = 0.0
    beside_changes_ms: float = 0.0
    feed_per_s: float = 0.0
    feed_us: float = 0.0
    disk_ratio: float = 0.0
    idle_share: float = 0.0
    idle_by_process: dict[str, float] = field(default_factory=dict)
    patches_max: int = 0
    beside_the_api: LoadTimes | None = None


def measure(cluster: Cluster, say: Say, *, is_quick: bool, scale: float = 1.0) -> SegmentTimes:
    cluster.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    cluster.execute(f"CREATE DATABASE {DATABASE}")
    url = cluster.url_of(DATABASE)
    migrate(url)
    times = SegmentTimes(QUICK_CUSTOMERS, QUICK_SALES)
    if not is_quick:
        times = SegmentTimes(int(CUSTOMERS * scale), int(SALES * scale))
    times.beside_the_api = measure_under_load(cluster, say, is_quick=is_quick, customers=times.customers)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"DATABASE_URL": url, "REGULARS_DATA_DIR": folder, "REGULARS_SECRET_KEY": "k" * 40}
        sales = QUICK_FED_SALES if is_quick else int(FED_SALES * scale)
        fed = asyncio.run(measure_feeding(cluster, url, say, sales=sales))
        times.feed_per_s, times.feed_us, times.disk_ratio = fed
        asyncio.run(_measure_counting(url, Path(folder), times, say))
        idle_s = QUICK_IDLE_S if is_quick else IDLE_S
        times.idle_by_process = measure_idling(cluster, url, folder, seconds=idle_s)
        times.idle_share = sum(times.idle_by_process.values())
        for name in ("DATABASE_URL", "REGULARS_DATA_DIR", "REGULARS_SECRET_KEY"):
            del os.environ[name]
    return times


def show(times: SegmentTimes, say: Say) -> None:
    say(f"{times.customers:,} customers, {times.sales:,} sales")
    for name, taken in times.warm_ms.items():
        say(f"  {name}: {taken:.0f} ms (bar: 300), {times.warm_cpu_ms[name]:.0f} ms of processor time")
    say(f"  one condition edited: {times.edited_ms:.0f} ms (bar: 200), {times.edited_cpu_ms:.0f} ms of processor time")
    say(f"  first count after a restart: {times.after_restart_s:.2f} s (bar: 2)")
    say(f"    {times.after_restart_cpu_s:.2f} s of processor time, its start included")
    say(f"  memory of the analysis process: {times.memory_mib:,.0f} MiB (bar: 1,536)")
    say(f"  a date with as many values as customers: {times.distinct_first_s:.2f} s at first (bar: 5),")
    say(f"    {times.distinct_first_cpu_s:.2f} s of processor time;")
    say(f"    {times.distinct_again_ms:.0f} ms with another constant (bar: 300)")
    say(f"  a number with as many values as customers: {times.numbers_first_s:.2f} s at first (bar: 5),")
    say(f"    {times.numbers_first_cpu_s:.2f} s of processor time;")
    say(f"    {times.numbers_again_ms:.0f} ms with another constant (bar: 300);")
    say(f"    {times.numbers_beside_changes_ms:.0f} ms while 100 new ones a second come (bar: 500)")
    say(f"  nested, while 100 attributes a second change: {times.beside_changes_ms:.0f} ms (bar: 500),")
    say(f"    {times.patches_max} patches at most")
    say(f"  feed: {times.feed_per_s:,.0f} sales/s (bar: 5,000), {times.feed_us:.0f} µs a sale (bar: 100)")
    say(f"  size on disk / sales table: {times.disk_ratio:.3f} (bar: 0.1)")
    say(
        f"  {IDLE_ORGANIZATIONS:,} idle organizations, {WITH_SEGMENTS} with segments: {times.idle_share:.1%} (bar: 2 %)"
    )
    for name, share in times.idle_by_process.items():
        say(f"    {name}: {share:.2%}")
    if times.beside_the_api is not None:
        _show_load(times.beside_the_api, say)


def _show_load(beside: LoadTimes, say: Say) -> None:
    without = beside.sale_us[WITHOUT]
    for name, taken in beside.sale_us.items():
        say(f"  a sale {name}: {taken:.0f} µs of processor time, {taken / without - 1:+.1%}")
    say("    (bars: 5 % with segments and the feeder paused, 0 without)")
    say(
        f"  at {beside.rate:,.0f} sales/s, half the load: one counts after {beside.seen_s:.2f} s,"
        f" {beside.seen_s_max:.2f} s at most (bar: 5)"
    )
    say(
        f"  a resync of {beside.resync_customers:,} with 1 % changed: counts in {beside.resync_count_ms:.0f} ms"
        f" (bar: 500), {beside.resync_runs} runs at most, {beside.resync_grew_kib:.0f} KiB more"
    )


def as_json(times: SegmentTimes) -> dict[str, Any]:
    return asdict(times)


# Counting.


def segments() -> dict[str, dict[str, Any]]:
    gold = {"type": "attribute", "key": "tier", "comparison": "any_of", "values": ["Gold", "Platinum"]}
    points = {"type": "attribute", "key": "points", "comparison": "at_least", "value": "2500"}
    spend = {"type": "spend", "currency": "EUR", "at_least_cents": 30_000, "window": {"last_days": 365}}
    of_collection = {
        "type": "articles",
        "at_least": 2,
        "property": {"key": "collection", "comparison": "is", "value": "C7"},
    }
    lapsed = {
        "type": "last_purchase",
        "when": {"comparison": "not_in_last_days", "days": 60, "without_value": False},
    }
    recent = {"type": "bought", "window": {"last_days": 30}}
    return {
        "attributes": _all(gold, points),
        "and net spend in 365 days": _all(gold, points, spend),
        "articles with a property, ever": _all(of_collection),
        "lapsed": _all(lapsed),
        "none of, with those who never bought": {"type": "none", "of": [recent, gold]},
        "three levels": _all(
            gold,
            {
                "type": "any",
                "of": [
                    {"type": "all", "of": [spend, {"type": "consent", "state": "may_be_texted"}]},
                    {"type": "none", "of": [of_collection, recent]},
                ],
            },
            {"type": "any", "of": [lapsed, points]},
        ),
    }


def _all(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {"type": "all", "of": list(conditions)}


def query_of(big: ColumnArrays, match: dict[str, Any]) -> SegmentQuery:
    return SegmentQuery(
        match=read_definition(json.dumps({"name": "x", "match": match}).encode()).match,
        attributes={
            "tier": (AttributeType.ENUM, TIERS),
            "points": (AttributeType.NUMBER, ()),
            "joined": (AttributeType.DATE, ()),
            "balance": (AttributeType.NUMBER, ()),
        },
        properties={"collection": (AttributeType.TEXT, ())},
        zone="UTC",
        today=big.today,
    )


def expected(big: ColumnArrays) -> dict[str, int]:
    """The same counts from the arrays, without any of the code that is measured."""
    today = (datetime(big.today.year, big.today.month, big.today.day, tzinfo=UTC)).timestamp() // 86_400
    gold, points = big.tier >= 2, big.points >= 2500
    recent_year = (big.day > today - 365) & (big.day <= today)
    spent = np.bincount(big.customer[recent_year], big.amount[recent_year], big.customers) >= 30_000
    in_collection = (big.line_product > 0) & (big.line_product % COLLECTIONS == 7)
    articles = (
        np.bincount(big.line_customer[in_collection], big.line_quantity[in_collection], big.customers) >= 2_000_000
    )
    bought = ~big.kind
    ever = np.bincount(big.customer[bought], minlength=big.customers) > 0
    in_60 = np.bincount(big.customer[bought & (big.day > today - 60)], minlength=big.customers) > 0
    in_30 = np.bincount(big.customer[bought & (big.day > today - 30)], minlength=big.customers) > 0
    lapsed, may_be_texted = ever & ~in_60, big.consent == MAY_BE_TEXTED
    nested = gold & ((spent & may_be_texted) | ~(articles | in_30)) & (lapsed | points)
    return {
        "attributes": int((gold & points).sum()),
        "and net spend in 365 days": int((gold & points & spent).sum()),
        "articles with a property, ever": int(articles.sum()),
        "lapsed": int(lapsed.sum()),
        "none of, with those who never bought": int((~(in_30 | gold)).sum()),
        "three levels": int(nested.sum()),
    }


async def _measure_counting(url: str, folder: Path, times: SegmentTimes, say: Say) -> None:
    database = Database(url, pool_max=4, statement_timeout_ms=600_000)
    await database.open()
    try:
        async with database.connection() as connection:
            organization = await create_organization(connection, "Large")
        started = time.monotonic()
        big = await write_columns(database, organization.id, customers=times.customers, sales=times.sales)
        took_s = time.monotonic() - started
        say(f"{times.sales:,} sales of {times.customers:,} customers are in columns ({took_s:.0f} s)")
        settings = Settings(data_dir=folder, database_url=url)
        definitions = segments()
        wanted = expected(big)
        async with running(settings) as analysis:
            for place, (name, match) in enumerate(definitions.items()):
                figures = await _ask(analysis, big, match)
                if figures.total != wanted[name]:
                    raise AssertionError(f"{name}: {figures.total}, and not {wanted[name]}")
                times.warm_ms[name], times.warm_cpu_ms[name] = await _warm_ms(analysis, big, match, place=place)
                say(f"{name}: {figures.total:,}, {times.warm_ms[name]:.0f} ms")
            before = analysis_cpu_s()
            times.edited_ms = await _edited_ms(analysis, big, definitions["three levels"])
            times.edited_cpu_ms = 1000 * (analysis_cpu_s() - before) / REPEATS
            before = analysis_cpu_s()
            times.distinct_first_s = (await _timed(analysis, big, _joined("2019-01-01")))[1]
            times.distinct_first_cpu_s = analysis_cpu_s() - before
            times.distinct_again_ms = 1000 * (await _timed(analysis, big, _joined("2018-06-01")))[1]
            await _measure_numbers(analysis, big, times)
            await _during_changes(database, analysis, big, definitions["three levels"], times)
            times.memory_mib = analysis_memory_mib()
        async with running(settings) as analysis:
            times.after_restart_s = (await _timed(analysis, big, definitions["three levels"]))[1]
            times.after_restart_cpu_s = analysis_cpu_s()
    finally:
        await database.close()


def _joined(day: str) -> dict[str, Any]:
    return _all({"type": "attribute", "key": "joined", "comparison": "before", "value": day})


def _above(balance: str) -> dict[str, Any]:
    return _all({"type": "attribute", "key": "balance", "comparison": "more", "value": balance})


async def _measure_numbers(analysis: Analysis, big: ColumnArrays, times: SegmentTimes) -> None:
    before = analysis_cpu_s()
    figures, times.numbers_first_s = await _timed(analysis, big, _above(balance_of(100)))
    times.numbers_first_cpu_s = analysis_cpu_s() - before
    if figures.total != big.customers - 101:
        raise AssertionError(f"a balance above {balance_of(100)}: {figures.total}")
    times.numbers_again_ms = 1000 * (await _timed(analysis, big, _above(balance_of(101))))[1]


async def _ask(analysis: Analysis, big: ColumnArrays, match: dict[str, Any]) -> SegmentCounts:
    return await analysis.count_segment(big.organization_id, query_of(big, match), deadline_s=DEADLINE_S)


async def _timed(analysis: Analysis, big: ColumnArrays, match: dict[str, Any]) -> tuple[SegmentCounts, float]:
    started = time.perf_counter()
    figures = await _ask(analysis, big, match)
    return figures, time.perf_counter() - started


async def _warm_ms(analysis: Analysis, big: ColumnArrays, match: dict[str, Any], *, place: int) -> tuple[float, float]:
    """Time and processor time of counts in memory, with another constant each time, so that no result is cached."""
    taken, worked = [], []
    for number in range(1, REPEATS + 1):
        before = analysis_cpu_s()
        taken.append((await _timed(analysis, big, _varied(match, place * REPEATS + number)))[1])
        worked.append(analysis_cpu_s() - before)
    return 1000 * statistics.median(taken), 1000 * statistics.mean(worked)


def _varied(match: Any, number: int) -> Any:
    """The same conditions with other constants, so that no result is cached."""
    if isinstance(match, list):
        return [_varied(one, number) for one in match]
    if not isinstance(match, dict):
        return match
    changed = {key: _varied(value, number) for key, value in match.items()}
    for key in ("at_least_cents", "last_days", "days"):
        if isinstance(changed.get(key), int):
            changed[key] += number
    if changed.get("key") == "points":
        changed["value"] = f"2500.{number}"
    if changed.get("key") == "collection":
        changed["value"] = f"C{(7 + number) % COLLECTIONS}"
    if changed.get("key") == "tier":
        # Repeats a condition, so that the text differs.
        changed["values"] = [*changed["values"], *changed["values"][:1] * number]
    return changed


async def _edited_ms(analysis: Analysis, big: ColumnArrays, match: dict[str, Any]) -> float:
    taken = []
    for number in range(REPEATS):
        edited = {**match, "of": [*match["of"]]}
        edited["of"][1] = {**match["of"][1], "of": [*match["of"][1]["of"]]}
        spend = {**match["of"][1]["of"][0]["of"][0], "at_least_cents": 40_000 + number}
        edited["of"][1]["of"][0] = {"type": "all", "of": [spend, match["of"][1]["of"][0]["of"][1]]}
        taken.append((await _timed(analysis, big, edited))[1])
    return 1000 * statistics.median(taken)


async def _during_changes(
    database: Database, analysis: Analysis, big: ColumnArrays, match: dict[str, Any], times: SegmentTimes
) -> None:
    """Counts while the feeder writes a patch of a hundred customers each second and the analysis process compacts."""
    chance = np.random.default_rng(3)
    taken, of_numbers, patches = [], [], []
    for second in range(CHANGES_S):
        states = [
            CustomerState(
                number,
                is_alive=True,
                attributes={
                    "tier": "Gold",
                    "points": str(number % 9_999),
                    "balance": balance_of((second + 1) * big.customers + number),
                },
            )
            for number in chance.integers(0, big.customers, 100).tolist()
        ]
        content = pack_customers(states)
        async with database.transaction() as tx:
            state = await lock_state(tx, big.organization_id)
            assert state is not None
            run = Run(state.next_run, "patch", 0, state.next_run, len(states), len(content))
            state.next_run += 1
            state.request_compaction(tx.now)
            await insert_run(tx, big.organization_id, 1, run)
            await insert_blob(tx, big.organization_id, 1, run.id, part="*", content=content)
            await update_state(tx, big.organization_id, state)
            patches.append(sum(run.kind == "patch" for run in await list_runs(tx, big.organization_id, 1)))
        taken.append((await _timed(analysis, big, match))[1])
        of_numbers.append((await _timed(analysis, big, _above(balance_of(100))))[1])
        await asyncio.sleep(1)
    times.beside_changes_ms, times.patches_max = 1000 * statistics.median(taken), max(patches)
    times.numbers_beside_changes_ms = 1000 * statistics.median(of_numbers)


def analysis_cpu_s() -> float:
    """Processor time of the analysis process so far."""
    used = _analysis_process().cpu_times()
    return used.user + used.system


def analysis_memory_mib() -> float:
    """The peak memory of the analysis process, as the kernel counts it."""
    status = Path(f"/proc/{_analysis_process().pid}/status").read_text("utf-8")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def _analysis_process() -> psutil.Process:
    processes = psutil.Process().children(recursive=True)
    [found] = [process for process in processes if "regulars.cli analysis" in " ".join(process.cmdline())]
    return found
