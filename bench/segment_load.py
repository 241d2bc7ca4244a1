"""Measures segments under API load: the cost per sale, the delay until a sale counts, a resync of every customer."""

import asyncio
import http.client
import json
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import psycopg

from database import Cluster, Organization, make_templates
from latency import open_loop
from load import wrk
from processes import Server, cpu_s, free_port, regulars_command, running_server, wait_until_started
from regulars.catalog.model import AttributeType
from regulars.columns import lifecycle
from regulars.columns.client import Analysis
from regulars.columns.feed.build import run_batch
from regulars.columns.protocol import AnalysisUnavailable, NotReady, SegmentQuery
from regulars.kit.db import Database
from regulars.kit.settings import Settings
from regulars.segments.definition import read_definition
from scenarios import CONNECTIONS
from tickets import CUSTOMERS, requests

# The order of the turns; the cost of a sale without segments is the baseline.
WITHOUT, BESIDE, IN_USE = "without segments", "beside another organization's", "with segments, the feeder paused"
COST_SALES, COST_TURNS, QUICK_COST_TURNS = 1_500, 8, 2
SEEN_S, QUICK_SEEN_S = 30, 6
SEEN_S_MAX = 60.0
FULL_LOAD_S = 4
RESYNC_BATCH = 500
CHANGED_EVERY = 100
ASK_AGAIN_S = 0.1
Say = Callable[[str], None]


@dataclass(frozen=True)
class LoadTimes:
    # Processor time of server and database per sale.
    sale_us: dict[str, float]
    rate: float
    seen_s: float
    seen_s_max: float
    resync_customers: int
    # Growth of the columns, and the largest number of their runs (sorted files).
    resync_grew_kib: float
    resync_count_ms: float
    resync_runs: int


def measure_under_load(cluster: Cluster, say: Say, *, is_quick: bool, customers: int) -> LoadTimes:
    wrk.ensure_installed()
    organization = make_templates(cluster)[0]
    sale_us = _measure_cost(cluster, organization, turns=QUICK_COST_TURNS if is_quick else COST_TURNS)
    say(f"a sale costs {', '.join(f'{taken:.0f} µs {name}' for name, taken in sale_us.items())}")
    url = cluster.clone("bench_seen")
    _add_customers(url, organization, customers)
    asyncio.run(_begin(url, UUID(organization.id)))
    with _running(url, with_worker=True) as (server, folder):
        analysis = Analysis(Settings(data_dir=folder))
        rate = wrk.run(
            server.url, "sales", name="full", keys=[organization.key], connections=CONNECTIONS, seconds=FULL_LOAD_S
        ).rate
        _wait_until_fed(url, organization)
        seen = _measure_count_delay(
            server, organization, analysis, rate=rate / 2, seconds=QUICK_SEEN_S if is_quick else SEEN_S
        )
        say(f"at {rate / 2:,.0f} sales/s one counts after {statistics.median(seen):.2f} s, {max(seen):.2f} s at most")
        _wait_until_compacted(url, organization)
        grew, count_ms, runs = _measure_resync(url, server, organization, analysis, customers=customers)
        say(f"a resync of {customers:,}: columns grew by {grew:.0f} KiB; counts took {count_ms:.0f} ms; {runs} runs")
    cluster.drop("bench_seen")
    return LoadTimes(sale_us, rate / 2, statistics.median(seen), max(seen), customers, grew, count_ms, runs)


@contextmanager
def _running(url: str, *, with_worker: bool) -> Iterator[tuple[Server, Path]]:
    port = free_port()
    environment = {
        "DATABASE_URL": url,
        "REGULARS_SECRET_KEY": "k" * 40,
        "REGULARS_PORT": str(port),
        "REGULARS_RATE_LIMIT_PER_S": "0",
        "REGULARS_LOG_LEVEL": "warning",
    }
    with tempfile.TemporaryDirectory(prefix="regulars-bench-run-") as folder:
        command = regulars_command(with_worker=with_worker)
        with running_server(command, {**environment, "REGULARS_DATA_DIR": folder}, port=port) as server:
            wait_until_started(server.pid)
            yield server, Path(folder)


def _add_customers(url: str, organization: Organization, customers: int) -> None:
    """Inserts customers up to the number, all of one tier."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO profiles (organization_id, id, external_id, first_name, created_at, updated_at)"
            " SELECT %s::uuid, ('00000000-0000-7000-9000-' || lpad(n::text, 12, '0'))::uuid,"
            " 'C' || lpad(n::text, greatest(6, length(n::text)), '0'), 'Camille', now(), now()"
            " FROM generate_series(%s::integer, %s::integer) n",
            (organization.id, CUSTOMERS + 1, customers),
        )
        connection.execute(
            'UPDATE profiles SET attributes = \'{"tier": "Gold"}\' WHERE organization_id = %s', (organization.id,)
        )
        connection.execute("VACUUM ANALYZE profiles")


async def _begin(url: str, organization_id: UUID) -> None:
    """Creates the first segment and waits until the columns are built."""
    database = Database(url, pool_max=2)
    await database.open()
    try:
        async with database.transaction() as tx:
            await lifecycle.begin(tx, organization_id)
        while True:
            while await run_batch(database, organization_id):
                pass
            async with database.transaction() as tx:
                progress = await lifecycle.find_build_progress(tx, organization_id)
            if progress is not None and progress.state == "ready":
                return
            await asyncio.sleep(ASK_AGAIN_S)
    finally:
        await database.close()


# What a sale costs.


def _measure_cost(cluster: Cluster, organization: Organization, *, turns: int) -> dict[str, float]:
    """Loads three servers without a worker alternately; returns the median of the turns of each.

    One connection sends the sales one after the other: sales that share a transaction share its cost, and how many do
    depends on the machine.
    """
    with ExitStack() as stack:
        servers = {}
        for number, name in enumerate((WITHOUT, BESIDE, IN_USE)):
            url = cluster.clone(f"bench_cost_{number}")
            stack.callback(cluster.drop, f"bench_cost_{number}")
            _register_properties(url, organization)
            if name == BESIDE:
                asyncio.run(_begin(url, _another(url)))
            elif name == IN_USE:
                asyncio.run(_begin(url, UUID(organization.id)))
            servers[name] = stack.enter_context(_running(url, with_worker=False))[0]
        for server in servers.values():
            _send_one_by_one(server, organization, name="warm")
        spent: dict[str, list[float]] = {name: [] for name in servers}
        for turn in range(turns):
            for name in list(servers) if turn % 2 == 0 else reversed(list(servers)):
                server = servers[name]
                before = _serving_cpu_s(server) + cpu_s(cluster.postmaster_pid)
                _send_one_by_one(server, organization, name=f"t{turn}")
                used = _serving_cpu_s(server) + cpu_s(cluster.postmaster_pid) - before
                spent[name].append(used / COST_SALES * 1e6)
    return {name: statistics.median(each) for name, each in spent.items()}


def _register_properties(url: str, organization: Organization) -> None:
    """Lets a worker register the keys of product properties; until then sales take the fallback path."""
    with _running(url, with_worker=True) as (server, _):
        _send_one_by_one(server, organization, name="known")
        _wait_until_fed(url, organization)


def _send_one_by_one(server: Server, organization: Organization, *, name: str) -> None:
    pending = requests(COST_SALES, run=name, key=organization.key, host=f"127.0.0.1:{server.port}")
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        for request in pending:
            connection.sendall(request)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            answer.read()
            if answer.status >= http.client.BAD_REQUEST:
                raise RuntimeError(f"a sale was refused: {answer.status}")


def _another(url: str) -> UUID:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "INSERT INTO organizations (id, name, secret, created_at)"
            " VALUES (gen_random_uuid(), 'another', decode(repeat('00', 32), 'hex'), now()) RETURNING id"
        ).fetchone()
    assert row is not None
    return UUID(str(row[0]))


def _serving_cpu_s(server: Server) -> float:
    """Processor time without the analysis process, which is idle here."""
    counting = 0.0
    for process in psutil.Process(server.pid).children(recursive=True):
        if "regulars.cli analysis" in " ".join(process.cmdline()):
            counting += cpu_s(process.pid)
    return cpu_s(server.pid) - counting


# When a sale counts.


def _measure_count_delay(
    server: Server, organization: Organization, analysis: Analysis, *, rate: float, seconds: int
) -> list[float]:
    """Measures, under a steady load, the time from the response to a sale until a count includes it."""
    seen: list[float] = []
    over = threading.Event()

    def probe() -> None:
        number = 0
        while not over.is_set():
            number += 1
            _send(server, organization, "/v1/sales-events", _probe(number))
            answered = time.monotonic()
            wanted = {"type": "tickets", "at_least": number, "products": ["PROBE"]}
            while asyncio.run(_count(analysis, organization, wanted)) == 0:
                if time.monotonic() > answered + SEEN_S_MAX:
                    break
                time.sleep(ASK_AGAIN_S)
            seen.append(time.monotonic() - answered)

    probing = threading.Thread(target=probe)
    probing.start()
    try:
        open_loop(server.port, organization.key, rate=rate, seconds=seconds, name="seen")
    finally:
        over.set()
        probing.join()
    return seen


def _probe(number: int) -> dict[str, Any]:
    occurred_at = datetime.now(UTC) - timedelta(seconds=90)
    product = {"external_id": "PROBE", "name": "Probe"}
    line = {"external_id": "1", "product": product, "quantity": 1, "unit_price_cents": 100, "total_price_cents": 100}
    line |= {"discount_cents": 0, "tax_cents": 0}
    return {
        "external_id": f"probe-{number}",
        "type": "PURCHASE",
        "occurred_at": occurred_at.isoformat(timespec="milliseconds"),
        "store_id": "S001",
        "currency": "EUR",
        "total_amount_cents": 100,
        "total_discount_cents": 0,
        "total_tax_cents": 0,
        "source": "pos",
        "profile_id": "C000001",
        "line_items": [line],
    }


async def _count(analysis: Analysis, organization: Organization, *conditions: dict[str, Any]) -> int:
    try:
        figures = await analysis.count_segment(UUID(organization.id), _query(conditions), deadline_s=10)
    except (NotReady, AnalysisUnavailable):
        return 0
    return figures.total


def _query(conditions: Sequence[dict[str, Any]]) -> SegmentQuery:
    match = {"type": "all", "of": list(conditions)}
    return SegmentQuery(
        match=read_definition(json.dumps({"name": "x", "match": match}).encode()).match,
        attributes={"tier": (AttributeType.TEXT, ())},
        zone="UTC",
        today=datetime.now(UTC).date(),
    )


def _send(server: Server, organization: Organization, path: str, body: dict[str, Any]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"x-api-key": organization.key, "content-type": "application/json"}
    connection.request("POST", path, json.dumps(body).encode(), headers)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    if answer.status >= http.client.BAD_REQUEST:
        raise RuntimeError(f"{path}: {answer.status} {said[:300]!r}")


def _wait_until_fed(url: str, organization: Organization) -> None:
    until = time.monotonic() + 300
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < until:
            row = connection.execute(
                "SELECT count(*) FROM outbox WHERE organization_id = %s", (organization.id,)
            ).fetchone()
            if row is None or row[0] == 0:
                return
            time.sleep(ASK_AGAIN_S)
    raise TimeoutError("The feeder did not catch up.")


def _wait_until_compacted(url: str, organization: Organization) -> None:
    """Waits until the fed rows are merged and compacted, as far as that pays."""
    _wait_until_fed(url, organization)
    until = time.monotonic() + 300
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < until:
            row = connection.execute(
                "SELECT tidy_at FROM segment_columns WHERE organization_id = %s", (organization.id,)
            ).fetchone()
            if row is not None and row[0] is None:
                return
            time.sleep(ASK_AGAIN_S)
    raise TimeoutError("The columns were not tidied up.")


# A resync.


def _measure_resync(
    url: str, server: Server, organization: Organization, analysis: Analysis, *, customers: int
) -> tuple[float, float, int]:
    """Sends every customer again, one in a hundred changed; measures the growth of the columns, the time of counts
    meanwhile, and the largest number of runs."""
    before, _ = _columns(url, organization)
    taken: list[float] = []
    runs: list[int] = []
    over = threading.Event()

    def look() -> None:
        number = 0
        while not over.is_set():
            number += 1
            condition = {"type": "attribute", "key": "tier", "comparison": "is", "value": f"Gold {number}"}
            started = time.perf_counter()
            asyncio.run(_count(analysis, organization, condition, {"type": "bought", "at_least": number}))
            taken.append(time.perf_counter() - started)
            runs.append(_columns(url, organization)[1])
            time.sleep(ASK_AGAIN_S)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        _send_all(server, organization, customers=customers, changed_every=CHANGED_EVERY)
        _wait_until_fed(url, organization)
    finally:
        over.set()
        looking.join()
    silver = {"type": "attribute", "key": "tier", "comparison": "is", "value": "Silver"}
    if (counted := asyncio.run(_count(analysis, organization, silver))) != customers // CHANGED_EVERY:
        raise AssertionError(f"{counted} have changed, and not {customers // CHANGED_EVERY}")
    grew = _columns(url, organization)[0] - before
    return grew / 1024, 1000 * statistics.median(taken), max(runs)


def _columns(url: str, organization: Organization) -> tuple[int, int]:
    """The bytes of the columns, and the number of their runs."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT COALESCE(sum(bytes), 0), count(*) FROM segment_runs WHERE organization_id = %s AND is_live",
            (organization.id,),
        ).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def _send_all(server: Server, organization: Organization, *, customers: int, changed_every: int) -> None:
    for first in range(1, customers + 1, RESYNC_BATCH):
        items = [
            {
                "external_id": f"C{number:06d}",
                "first_name": "Camille",
                "attributes": {"tier": "Silver" if number % changed_every == 0 else "Gold"},
            }
            for number in range(first, min(first + RESYNC_BATCH, customers + 1))
        ]
        _send(server, organization, "/v1/profiles/batch", {"items": items})
