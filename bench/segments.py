"""Segments: how long counting takes on a large organization, what feeding costs, and what idle ones cost.

The large organization's columns are written as a build and its merges leave them; every count is held against the same
arrays by other means. Feeding and the size on disk are measured on sales that go all the way.
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
from processes import cpu_s, free_port, regulars_command, running_server, wait_until_settled
from regulars.catalog.model import AttributeType
from regulars.kit.db import Database
from regulars.kit.migrate import migrate
from regulars.kit.settings import Settings
from regulars.organizations.manage import create_organization
from regulars.segments.analysis.ask import Analysis, running
from regulars.segments.analysis.model import Asked, Figures
from regulars.segments.columns import life
from regulars.segments.columns.model import CustomerState, Run, pack_customers
from regulars.segments.queries import insert_blob, insert_run, lock_state, update_state
from regulars.segments.read import read_definition
from segment_columns import COLLECTIONS, TIERS, Big, write_big
from segment_feed import measure_feeding

DATABASE = "bench_segments"
CUSTOMERS, SALES = 1_000_000, 10_000_000
QUICK_CUSTOMERS, QUICK_SALES = 20_000, 200_000
FED_SALES, QUICK_FED_SALES = 200_000, 5_000
IDLE_ORGANIZATIONS, WITH_SEGMENTS = 10_000, 20
IDLE_S, QUICK_IDLE_S = 60.0, 5.0
REPEATS = 5
DEADLINE_S = 60.0
Say = Callable[[str], None]


@dataclass
class SegmentTimes:
    customers: int
    sales: int
    warm_ms: dict[str, float] = field(default_factory=dict)
    warm_cpu_ms: dict[str, float] = field(default_factory=dict)
    edited_ms: float = 0.0
    after_restart_s: float = 0.0
    after_restart_cpu_s: float = 0.0
    memory_mib: float = 0.0
    distinct_first_s: float = 0.0
    distinct_again_ms: float = 0.0
    beside_changes_ms: float = 0.0
    feed_per_s: float = 0.0
    feed_us: float = 0.0
    disk_ratio: float = 0.0
    idle_share: float = 0.0


def measure(cluster: Cluster, say: Say, *, is_quick: bool) -> SegmentTimes:
    cluster.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    cluster.execute(f"CREATE DATABASE {DATABASE}")
    url = cluster.url_of(DATABASE)
    migrate(url)
    times = SegmentTimes(QUICK_CUSTOMERS, QUICK_SALES) if is_quick else SegmentTimes(CUSTOMERS, SALES)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"DATABASE_URL": url, "REGULARS_DATA_DIR": folder, "REGULARS_SECRET_KEY": "k" * 40}
        fed = asyncio.run(measure_feeding(cluster, url, say, sales=QUICK_FED_SALES if is_quick else FED_SALES))
        times.feed_per_s, times.feed_us, times.disk_ratio = fed
        asyncio.run(_measure_counting(url, Path(folder), times, say))
        _measure_idling(cluster, url, folder, times, say, seconds=QUICK_IDLE_S if is_quick else IDLE_S)
        for name in ("DATABASE_URL", "REGULARS_DATA_DIR", "REGULARS_SECRET_KEY"):
            del os.environ[name]
    return times


def show(times: SegmentTimes, say: Say) -> None:
    say(f"{times.customers:,} customers, {times.sales:,} sales")
    for name, taken in times.warm_ms.items():
        say(f"  {name}: {taken:.0f} ms (bar: 300), {times.warm_cpu_ms[name]:.0f} ms of processor time")
    say(f"  one condition edited: {times.edited_ms:.0f} ms (bar: 200)")
    say(f"  first count after a restart: {times.after_restart_s:.2f} s (bar: 2)")
    say(f"    {times.after_restart_cpu_s:.2f} s of processor time, its start included")
    say(f"  memory of the analysis process: {times.memory_mib:,.0f} MiB (bar: 1,536)")
    say(f"  a date with as many values as customers: {times.distinct_first_s:.2f} s at first (bar: 5),")
    say(f"    {times.distinct_again_ms:.0f} ms with another constant (bar: 300)")
    say(f"  nested, while 100 attributes a second change: {times.beside_changes_ms:.0f} ms (bar: 500)")
    say(f"  feed: {times.feed_per_s:,.0f} sales/s (bar: 5,000), {times.feed_us:.0f} µs a sale (bar: 100)")
    say(f"  size on disk / sales table: {times.disk_ratio:.3f} (bar: 0.1)")
    say(
        f"  {IDLE_ORGANIZATIONS:,} idle organizations, {WITH_SEGMENTS} with segments: {times.idle_share:.1%} (bar: 2 %)"
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


def asked_of(big: Big, match: dict[str, Any]) -> Asked:
    return Asked(
        match=read_definition(json.dumps({"name": "x", "match": match}).encode()).match,
        attributes={
            "tier": (AttributeType.ENUM, TIERS),
            "points": (AttributeType.NUMBER, ()),
            "joined": (AttributeType.DATE, ()),
        },
        properties={"collection": (AttributeType.TEXT, ())},
        zone="UTC",
        today=big.today,
    )


def expected(big: Big) -> dict[str, int]:
    """The same counts from the arrays, without any of the code that is measured."""
    today = (datetime(big.today.year, big.today.month, big.today.day, tzinfo=UTC)).timestamp() // 86_400
    gold, points = big.tier >= 2, big.points >= 2500
    recent_year = (big.day >= today - 365) & (big.day <= today)
    spent = np.bincount(big.customer[recent_year], big.amount[recent_year], big.customers) >= 30_000
    in_collection = (big.line_product > 0) & (big.line_product % COLLECTIONS == 7)
    articles = (
        np.bincount(big.line_customer[in_collection], big.line_quantity[in_collection], big.customers) >= 2_000_000
    )
    bought = ~big.kind
    ever = np.bincount(big.customer[bought], minlength=big.customers) > 0
    in_60 = np.bincount(big.customer[bought & (big.day >= today - 60)], minlength=big.customers) > 0
    in_30 = np.bincount(big.customer[bought & (big.day >= today - 30)], minlength=big.customers) > 0
    return {
        "attributes": int((gold & points).sum()),
        "and net spend in 365 days": int((gold & points & spent).sum()),
        "articles with a property, ever": int(articles.sum()),
        "lapsed": int((ever & ~in_60).sum()),
        "none of, with those who never bought": int((~(in_30 | gold)).sum()),
    }


async def _measure_counting(url: str, folder: Path, times: SegmentTimes, say: Say) -> None:
    database = Database(url, pool_max=4, statement_timeout_ms=600_000)
    await database.open()
    try:
        async with database.connection() as connection:
            organization = await create_organization(connection, "Large")
        started = time.monotonic()
        big = await write_big(database, organization.id, customers=times.customers, sales=times.sales)
        took_s = time.monotonic() - started
        say(f"{times.sales:,} sales of {times.customers:,} customers are in columns ({took_s:.0f} s)")
        settings = Settings(data_dir=folder, database_url=url)
        definitions = segments()
        wanted = expected(big)
        async with running(settings) as analysis:
            for place, (name, match) in enumerate(definitions.items()):
                figures = await _ask(analysis, big, match)
                if name in wanted and figures.total != wanted[name]:
                    raise AssertionError(f"{name}: {figures.total}, and not {wanted[name]}")
                times.warm_ms[name], times.warm_cpu_ms[name] = await _warm_ms(analysis, big, match, place=place)
                say(f"{name}: {figures.total:,}, {times.warm_ms[name]:.0f} ms")
            times.edited_ms = await _edited_ms(analysis, big, definitions["three levels"])
            times.distinct_first_s = (await _timed(analysis, big, _joined("2019-01-01")))[1]
            times.distinct_again_ms = 1000 * (await _timed(analysis, big, _joined("2018-06-01")))[1]
            times.beside_changes_ms = await _beside_changes(database, analysis, big, definitions["three levels"])
            times.memory_mib = _memory_mib()
        async with running(settings) as analysis:
            times.after_restart_s = (await _timed(analysis, big, definitions["three levels"]))[1]
            used = _analysis_process().cpu_times()
            times.after_restart_cpu_s = used.user + used.system
    finally:
        await database.close()


def _joined(day: str) -> dict[str, Any]:
    return _all({"type": "attribute", "key": "joined", "comparison": "before", "value": day})


async def _ask(analysis: Analysis, big: Big, match: dict[str, Any]) -> Figures:
    return await analysis.figures(big.organization_id, asked_of(big, match), deadline_s=DEADLINE_S)


async def _timed(analysis: Analysis, big: Big, match: dict[str, Any]) -> tuple[Figures, float]:
    started = time.perf_counter()
    figures = await _ask(analysis, big, match)
    return figures, time.perf_counter() - started


async def _warm_ms(analysis: Analysis, big: Big, match: dict[str, Any], *, place: int) -> tuple[float, float]:
    """With the columns in memory, and every condition new: another constant each time. Also by processor time."""
    process = _analysis_process()
    taken, worked = [], []
    for number in range(1, REPEATS + 1):
        before = process.cpu_times()
        taken.append((await _timed(analysis, big, _varied(match, place * REPEATS + number)))[1])
        after = process.cpu_times()
        worked.append(after.user + after.system - before.user - before.system)
    return 1000 * statistics.median(taken), 1000 * statistics.mean(worked)


def _varied(match: Any, number: int) -> Any:
    """The same conditions with other constants, so that none was computed before."""
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
        # The same again, so that it is another text.
        changed["values"] = [*changed["values"], *changed["values"][:1] * number]
    return changed


async def _edited_ms(analysis: Analysis, big: Big, match: dict[str, Any]) -> float:
    taken = []
    for number in range(REPEATS):
        edited = {**match, "of": [*match["of"]]}
        edited["of"][1] = {**match["of"][1], "of": [*match["of"][1]["of"]]}
        spend = {**match["of"][1]["of"][0]["of"][0], "at_least_cents": 40_000 + number}
        edited["of"][1]["of"][0] = {"type": "all", "of": [spend, match["of"][1]["of"][0]["of"][1]]}
        taken.append((await _timed(analysis, big, edited))[1])
    return 1000 * statistics.median(taken)


async def _beside_changes(database: Database, analysis: Analysis, big: Big, match: dict[str, Any]) -> float:
    """While a patch of a hundred customers comes each second, as the feeder writes it."""
    chance = np.random.default_rng(3)
    taken = []
    for _ in range(REPEATS):
        states = [
            CustomerState(int(number), is_alive=True, attributes={"tier": "Gold", "points": str(int(number) % 9_999)})
            for number in chance.integers(0, big.customers, 100)
        ]
        content = pack_customers(states)
        async with database.transaction() as tx:
            state = await lock_state(tx, big.organization_id)
            assert state is not None
            run = Run(state.next_run, "patch", 0, state.next_run, len(states), len(content))
            state.next_run += 1
            state.version += 1
            await insert_run(tx, big.organization_id, 1, run)
            await insert_blob(tx, big.organization_id, 1, run.id, part="*", content=content)
            await update_state(tx, big.organization_id, state)
        taken.append((await _timed(analysis, big, match))[1])
        await asyncio.sleep(1)
    return 1000 * statistics.median(taken)


def _memory_mib() -> float:
    """The most that the analysis process ever had, as the kernel counts it."""
    status = Path(f"/proc/{_analysis_process().pid}/status").read_text("utf-8")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def _analysis_process() -> psutil.Process:
    processes = psutil.Process().children(recursive=True)
    [found] = [process for process in processes if "regulars.cli analysis" in " ".join(process.cmdline())]
    return found


# Idling.


def _measure_idling(cluster: Cluster, url: str, folder: str, times: SegmentTimes, say: Say, *, seconds: float) -> None:
    asyncio.run(_make_idle(url))
    port = free_port()
    environment = {"DATABASE_URL": url, "REGULARS_SECRET_KEY": "k" * 40, "REGULARS_PORT": str(port)}
    with running_server(
        regulars_command(with_worker=True), {**environment, "REGULARS_DATA_DIR": folder}, port=port
    ) as server:
        time.sleep(5)
        wait_until_settled(server.pid)
        before = cpu_s(server.pid) + cpu_s(cluster.postmaster_pid)
        time.sleep(seconds)
        times.idle_share = (cpu_s(server.pid) + cpu_s(cluster.postmaster_pid) - before) / seconds
    say(f"{IDLE_ORGANIZATIONS:,} idle organizations cost {times.idle_share:.1%} of a core")


async def _make_idle(url: str) -> None:
    database = Database(url, pool_max=2)
    await database.open()
    try:
        async with database.transaction() as tx:
            await tx.execute(
                "INSERT INTO organizations (id, name, secret, created_at)"
                " SELECT gen_random_uuid(), 'idle ' || n, decode(repeat('00', 32), 'hex'), now()"
                " FROM generate_series(1, %s) AS n",
                (IDLE_ORGANIZATIONS,),
            )
            rows = await tx.fetch("SELECT id FROM organizations WHERE name LIKE 'idle %%' LIMIT %s", (WITH_SEGMENTS,))
            for (organization_id,) in rows:
                await life.settle(tx, organization_id, is_needed=True)
    finally:
        await database.close()
