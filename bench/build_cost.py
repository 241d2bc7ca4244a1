"""Measures the first build of the columns: the processor time of a sale in the worker and the database, with customers
and merges.

With another commit beside it, each builds equal rows with its own code, in turns, in a second process of this file.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from analytics_rows import write_rows
from database import Cluster
from processes import ROOT, cpu_s
from regulars.columns import lifecycle
from regulars.columns.engine.compaction import compact
from regulars.columns.feed.build import run_batch
from regulars.kit import process
from regulars.kit.db import Database
from regulars.kit.migrate import migrate
from regulars.organizations.manage import create_organization

CUSTOMERS, SALES = 30_000, 300_000
QUICK_SCALE: Final = 0.05
DAYS: Final = 730
TURNS: Final = 5
QUICK_TURNS: Final = 1
HERE: Final = "this release"
DATABASE: Final = "bench_build"
# Releases before analytics left sales without a customer out, so both kinds of rows are measured.
ROWS: Final = {"every sale with a customer": 0, "a third without a customer": 1}

Say = Callable[[str], None]


@dataclass
class BuildCosts:
    sales: int
    # By kind of rows and source, in µs a sale, one number per turn.
    us: dict[str, dict[str, list[float]]] = field(default_factory=dict)


def measure(cluster: Cluster, say: Say, *, is_quick: bool, beside: Mapping[str, Path] | None = None) -> BuildCosts:
    scale = QUICK_SCALE if is_quick else 1.0
    customers, sales = int(CUSTOMERS * scale), int(SALES * scale)
    sources = {HERE: ROOT / "src", **(beside or {})}
    costs = BuildCosts(sales)
    for rows, anonymous_thirds in ROWS.items():
        templates = {name: f"{DATABASE}_template_{number}" for number, name in enumerate(sources)}
        for name, template in templates.items():
            cluster.drop(template)
            cluster.execute(f"CREATE DATABASE {template}")
            _run(sources[name], ["fill", cluster.url_of(template), str(customers), str(sales), str(anonymous_thirds)])
        costs.us[rows] = {name: [] for name in sources}
        for turn in range(QUICK_TURNS if is_quick else TURNS):
            for name in sorted(sources, reverse=bool(turn % 2)):
                url = cluster.clone(DATABASE, template=templates[name])
                used_s = float(_run(sources[name], ["build", url, str(cluster.postmaster_pid)]))
                costs.us[rows][name].append(1e6 * used_s / sales)
                say(f"{rows}: {costs.us[rows][name][-1]:.1f} µs a sale, {name}")
        for database in (DATABASE, *templates.values()):
            cluster.drop(database)
    return costs


def show(costs: BuildCosts, say: Say) -> None:
    for rows, by_source in costs.us.items():
        here = by_source[HERE]
        say(f"first build of {costs.sales:,} sales, {rows}: {statistics.median(here):.1f} µs of processor time a sale")
        for name, us in by_source.items():
            if name != HERE:
                ratio = statistics.median(mine / other for mine, other in zip(here, us, strict=True))
                say(f"  {statistics.median(us):.1f} µs at {name}; {ratio:.2f} of it, the median of {len(us)} turns")


def as_json(costs: BuildCosts) -> dict[str, Any]:
    return asdict(costs)


def _run(source: Path, arguments: Sequence[str]) -> str:
    known = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
    environment = {**known, "PYTHONPATH": f"{source}:{Path(__file__).parent}"}
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


async def _fill(url: str, customers: int, sales: int, anonymous_thirds: int) -> None:
    database = Database(url, pool_max=2, statement_timeout_ms=600_000)
    await database.open()
    async with database.connection() as connection:
        organization = await create_organization(connection, "Build")
    await write_rows(
        database, organization.id, customers=customers, sales=sales, days=DAYS, anonymous_thirds=anonymous_thirds
    )
    await database.close()


async def _build(url: str, postmaster_pid: int) -> float:
    """Alternates the worker's batches and the analysis process's merges, and returns their processor time."""
    database = Database(url, pool_max=2)
    await database.open()
    async with database.connection() as connection:
        [(organization_id,)] = await (await connection.execute("SELECT id FROM organizations")).fetchall()
    before = time.process_time() + cpu_s(postmaster_pid)
    # Names of the release before analytics.
    need_columns = getattr(lifecycle, "need_columns", None) or lifecycle.begin
    async with database.transaction() as tx:
        await need_columns(tx, organization_id)
    with psycopg.connect(url, autocommit=True) as watching:
        while True:
            has_more = await run_batch(database, organization_id)
            await compact(database, organization_id)
            state = watching.execute("SELECT state FROM segment_columns").fetchone()
            if state == ("ready",):
                break
            if not has_more:
                await asyncio.sleep(0.05)
    while await compact(database, organization_id):
        pass
    used_s = time.process_time() + cpu_s(postmaster_pid) - before
    await database.close()
    return used_s


if __name__ == "__main__":
    act, database_url, *others = sys.argv[1:]
    if act == "fill":
        migrate(database_url)
        asyncio.run(_fill(database_url, int(others[0]), int(others[1]), int(others[2])))
    else:
        # As each release's worker does it.
        getattr(process, "reduce_garbage_collection", lambda: None)()
        print(asyncio.run(_build(database_url, int(others[0]))))  # read by the first process
