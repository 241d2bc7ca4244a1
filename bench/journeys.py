"""Measures journeys: whether entering keeps up with a stream of sales, and the cost of a live journey on the write
path, of an entry that sets an attribute, and of many waiting runs."""

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import psycopg

from database import Cluster, Organization, make_templates
from latency import open_loop
from processes import Server, cpu_s, free_port, jobs_cpu_s, regulars_command, running_server, wait_until_started
from regulars.journeys.definition import read_definition
from regulars.journeys.manage import activate, create_journey
from regulars.kit.db import Database
from regulars.work.statistics import Statistics
from tickets import CUSTOMERS

DATABASE = "bench_journeys"
RATE = 1_000
SECONDS = 60
QUICK_RATE = 200
QUICK_SECONDS = 5
WRITE_PATH_SECONDS = 15
WAITING = 100_000
QUICK_WAITING = 5_000
IDLE_S = 60.0
QUICK_IDLE_S = 5.0
DRAIN_S_MAX = 300.0
LOOK_EVERY_S = 0.5
DEFINITION: dict[str, Any] = {
    "name": "Second purchase",
    "trigger": "purchase",
    "filter": {
        "type": "all",
        "of": [{"type": "amount", "at_least_cents": 100}, {"type": "currency", "any_of": ["EUR"]}],
    },
    "steps": [{"do": "wait", "days": 30}, {"do": "exit"}],
}

SETS = {
    "name": "Bought again",
    "trigger": "purchase",
    "steps": [{"do": "set_attribute", "key": "again", "value": "true"}],
}
ENTRIES = 4_000
QUICK_ENTRIES = 1_000

Say = Callable[[str], None]


@dataclass(frozen=True)
class JourneyTimes:
    """`lag_s`: largest age of an unhandled fact. `drained_s`: time from the last sale until the last run reached its
    wait. The write path is measured without a worker."""

    rate: int
    seconds: int
    entered: int
    lag_s: float
    drained_s: float
    p99_ms: float
    cores: float
    sale_us_without: float
    sale_us_with: float
    entry_with_attribute_us: float
    waiting: int
    idle_s: float
    idle_core_share: float


def measure(cluster: Cluster, say: Say, *, is_quick: bool) -> JourneyTimes:
    organization = make_templates(cluster)[0]
    rate, seconds = (QUICK_RATE, QUICK_SECONDS) if is_quick else (RATE, SECONDS)
    entry_us = measure_entries(cluster, organization, say, entries=QUICK_ENTRIES if is_quick else ENTRIES)
    without_us, with_us = _measure_write_path(cluster, organization, say, rate=rate, is_quick=is_quick)
    url = cluster.clone(DATABASE)
    _add_customers(url, organization, rate * seconds)
    asyncio.run(_make_live(url, organization))
    with _running(url, with_worker=True) as server:
        wait_until_started(server.pid)
        before = cpu_s(server.pid) + cpu_s(cluster.postmaster_pid)
        with _watching(url, organization) as watch:
            load = open_loop(server.port, organization.key, rate=rate, seconds=seconds, name="j", distinct=True)
            ended = time.monotonic()
            watch.wait_until_entered(rate * seconds)
        drained_s = max(0.0, time.monotonic() - ended)
        cores = (cpu_s(server.pid) + cpu_s(cluster.postmaster_pid) - before) / (seconds + drained_s)
        if load["errors"]:
            raise RuntimeError(f"{load['errors']} sales were not answered well")
        say(
            f"{rate * seconds:,} sales at {rate:,}/s entered; the oldest fact unheard was {watch.lag_s:.1f} s old, the"
            f" last run stood {drained_s:.1f} s after the last sale; p99 of a sale {load['p99_ms']:.0f} ms;"
            f" {cores:.2f} cores"
        )
        waiting = QUICK_WAITING if is_quick else WAITING
        _fill_waiting(url, organization, waiting)
        wait_until_started(server.pid)
        idle_s = QUICK_IDLE_S if is_quick else IDLE_S
        before = cpu_s(server.pid) + cpu_s(cluster.postmaster_pid)
        time.sleep(idle_s)
        share = (cpu_s(server.pid) + cpu_s(cluster.postmaster_pid) - before) / idle_s
    say(f"{waiting:,} waiting runs cost {share:.1%} of a core over {idle_s:.0f} s (bar: 2 %)")
    return JourneyTimes(
        rate=rate,
        seconds=seconds,
        entered=watch.entered,
        lag_s=watch.lag_s,
        drained_s=drained_s,
        p99_ms=load["p99_ms"],
        cores=cores,
        sale_us_without=without_us,
        sale_us_with=with_us,
        entry_with_attribute_us=entry_us,
        waiting=waiting,
        idle_s=idle_s,
        idle_core_share=share,
    )


def show(times: JourneyTimes, say: Say) -> None:
    say(
        f"{times.entered:,} entered at {times.rate:,}/s, lag {times.lag_s:.1f} s; a sale costs"
        f" {times.sale_us_without:.0f} µs, {times.sale_us_with:.0f} µs with a live journey; an entry"
        f" that sets an attribute {times.entry_with_attribute_us:.0f} µs; {times.waiting:,} that wait"
        f" cost {times.idle_core_share:.1%} of a core"
    )


def as_json(times: JourneyTimes) -> dict[str, Any]:
    return asdict(times)


def _measure_write_path(
    cluster: Cluster, organization: Organization, say: Say, *, rate: int, is_quick: bool
) -> tuple[float, float]:
    """Measures processor time of server and database per sale, without and with a live journey."""
    seconds = QUICK_SECONDS if is_quick else WRITE_PATH_SECONDS
    found = []
    for is_live in (False, True):
        url = cluster.clone(DATABASE)
        _add_customers(url, organization, rate * seconds)
        if is_live:
            asyncio.run(_make_live(url, organization))
        with _running(url, with_worker=False) as server:
            open_loop(server.port, organization.key, rate=rate, seconds=2, name="warm")
            asyncio.run(_gather_statistics(url))
            before = cpu_s(server.pid) + cpu_s(cluster.postmaster_pid)
            open_loop(server.port, organization.key, rate=rate, seconds=seconds, name="w", distinct=True)
            used = cpu_s(server.pid) + cpu_s(cluster.postmaster_pid) - before
        found.append(used / (rate * seconds) * 1e6)
    say(f"a sale costs {found[0]:.0f} µs of server and database, {found[1]:.0f} µs while a journey is live")
    return found[0], found[1]


def measure_entries(cluster: Cluster, organization: Organization, say: Say, *, entries: int) -> float:
    """Measures processor time of worker and database per sale that enters a journey, sets an attribute and completes.
    The sales and facts exist before the worker starts; the time of its start is subtracted."""
    used = []
    for count in (0, entries):
        url = cluster.clone(DATABASE)
        _add_customers(url, organization, max(entries, CUSTOMERS + 1))
        asyncio.run(_make_live(url, organization, SETS))
        _add_sales(url, organization, count)
        before = cpu_s(cluster.postmaster_pid)
        with _running(url, with_worker=True) as server, psycopg.connect(url, autocommit=True) as connection:
            until = time.monotonic() + DRAIN_S_MAX
            while _count_ended(connection, organization) < count:
                if time.monotonic() > until:
                    raise TimeoutError(f"Not all of {count} have completed within {DRAIN_S_MAX:.0f} s.")
                time.sleep(0.2)
            wait_until_started(server.pid)
            used.append(jobs_cpu_s(server.pid) + cpu_s(cluster.postmaster_pid) - before)
    microseconds = (used[1] - used[0]) / entries * 1e6
    say(f"an entry that sets an attribute costs {microseconds:.0f} µs of worker and database")
    return microseconds


def _count_ended(connection: psycopg.Connection[Any], organization: Organization) -> int:
    row = connection.execute(
        "SELECT count(*) FROM journey_runs WHERE organization_id = %s AND state = 'ended'", (organization.id,)
    ).fetchone()
    return int(row[0]) if row else 0


def _add_sales(url: str, organization: Organization, count: int) -> None:
    """Inserts one sale per customer, as every write path records them, with one fact per ten sales."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO sales_events (organization_id, id, store_id, profile_id, occurred_at, created_at,
                                      total_amount_cents, total_discount_cents, external_id, type, currency, line_items)
            SELECT organization_id, gen_random_uuid(), (
                       SELECT id FROM stores WHERE organization_id = %(organization_id)s LIMIT 1
                   ), id, now(), now(), 1990, 0, 'bench-' || external_id, 'PURCHASE', 'EUR', '[]'
            FROM profiles WHERE organization_id = %(organization_id)s ORDER BY profiles.id LIMIT %(count)s
            """,
            {"organization_id": organization.id, "count": count},
        )
        connection.execute(
            """
            INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
            SELECT %(organization_id)s, gen_random_uuid(), 'sales.recorded',
                   json_build_array(json_build_object('sales', json_agg(id))), now(), now()
            FROM (
                SELECT id, row_number() OVER (ORDER BY id) / 10 AS part FROM sales_events
                WHERE organization_id = %(organization_id)s AND external_id LIKE 'bench-%%'
            ) AS it
            GROUP BY part
            """,
            {"organization_id": organization.id},
        )
        connection.execute("VACUUM ANALYZE sales_events")


@contextmanager
def _running(url: str, *, with_worker: bool) -> Iterator[Server]:
    port = free_port()
    environment = {
        "DATABASE_URL": url,
        "REGULARS_SECRET_KEY": "k" * 40,
        "REGULARS_PORT": str(port),
        "REGULARS_RATE_LIMIT_PER_S": "0",
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(
            regulars_command(with_worker=with_worker), {**environment, "REGULARS_DATA_DIR": folder}, port=port
        ) as server,
    ):
        yield server


def _add_customers(url: str, organization: Organization, count: int) -> None:
    """Inserts one customer per ticket, so that each ticket starts a run."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO profiles (organization_id, id, external_id, first_name, created_at, updated_at)"
            " SELECT %s::uuid, ('00000000-0000-7000-9000-' || lpad(n::text, 12, '0'))::uuid,"
            " 'C' || lpad(n::text, 6, '0'), 'Camille', now(), now() FROM generate_series(%s::int, %s::int) n",
            (organization.id, CUSTOMERS + 1, max(count, CUSTOMERS + 1)),
        )
        connection.execute("VACUUM ANALYZE profiles")


async def _gather_statistics(url: str) -> None:
    """Analyzes the tables in place of the worker; otherwise the plans of the first sales stay in use."""
    database = Database(url, pool_max=2)
    await database.open()
    try:
        await Statistics(database).gather()
    finally:
        await database.close()


async def _make_live(url: str, organization: Organization, content: dict[str, Any] = DEFINITION) -> None:
    database = Database(url, pool_max=2)
    await database.open()
    try:
        async with database.transaction() as tx:
            definition = read_definition(json.dumps(content).encode())
            journey = await create_journey(tx, UUID(organization.id), definition)
            await activate(tx, UUID(organization.id), journey.row.id)
    finally:
        await database.close()


class _Watch:
    """Samples the database while sales arrive: age of the oldest unhandled fact, number of waiting runs."""

    def __init__(self, url: str, organization: Organization) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._organization_id = organization.id
        self.lag_s = 0.0
        self.entered = 0

    def look(self) -> None:
        row = self._connection.execute(
            "SELECT COALESCE(extract(epoch FROM now() - min(due_at)), 0) FROM outbox WHERE organization_id = %s",
            (self._organization_id,),
        ).fetchone()
        self.lag_s = max(self.lag_s, float(row[0]) if row else 0.0)

    def wait_until_entered(self, count: int) -> None:
        until = time.monotonic() + DRAIN_S_MAX
        while time.monotonic() < until:
            row = self._connection.execute(
                "SELECT count(*) FROM journey_runs WHERE organization_id = %s AND waits_for = 'time'",
                (self._organization_id,),
            ).fetchone()
            self.entered = int(row[0]) if row else 0
            if self.entered >= count:
                return
            time.sleep(0.1)
        raise TimeoutError(f"Only {self.entered} of {count} have entered within {DRAIN_S_MAX:.0f} s.")

    def close(self) -> None:
        self._connection.close()


@contextmanager
def _watching(url: str, organization: Organization) -> Iterator[_Watch]:
    watch, beside = _Watch(url, organization), _Watch(url, organization)
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(LOOK_EVERY_S):
            beside.look()

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield watch
    finally:
        is_over.set()
        looking.join()
        watch.lag_s = beside.lag_s
        watch.close()
        beside.close()


def _fill_waiting(url: str, organization: Organization, waiting: int) -> None:
    """Inserts runs of the same journey that wait until tomorrow, up to so many in all."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO journey_runs
                (organization_id, id, journey_id, version, fact_kind, fact_id, profile_id, state, step, waits_for,
                 waiting_since, due_at, entered_at)
            SELECT organization_id, gen_random_uuid(), journey_id, version, 'sale', 'filled-' || n, gen_random_uuid(),
                   'active', step, waits_for, waiting_since, due_at, entered_at
            FROM (SELECT * FROM journey_runs WHERE organization_id = %(organization_id)s LIMIT 1) AS one,
                 generate_series(1, greatest(0, %(waiting)s::bigint - (
                     SELECT count(*) FROM journey_runs WHERE organization_id = %(organization_id)s))) AS n
            """,
            {"organization_id": organization.id, "waiting": waiting},
        )
        connection.execute("VACUUM ANALYZE journey_runs")
