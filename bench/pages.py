"""Measures the response time of each page for an organization with a million customers, five million sales, a million
texts, a million webhook deliveries, 200,000 journey runs, campaigns and segments."""

import asyncio
import http.client
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psycopg
from tests.support.crawl import crawl, unreached_pages

from audience import fill_segments
from database import Cluster
from large import LARGE, STATEMENT_TIMEOUT_MS, Size, fill_large
from processes import Server, cpu_s, free_port, regulars_command, running_server, wait_until_started
from regulars.accounts import sessions, users
from regulars.catalog.counts import counting
from regulars.catalog.counts.counting import CountQueue
from regulars.catalog.model import Catalog
from regulars.columns.protocol import socket_path
from regulars.kit.db import Database
from regulars.kit.migrate import migrate
from regulars.kit.settings import Settings
from regulars.profiles.attribute_values import AttributeValues
from regulars.sales.property_values import PropertyValues
from regulars.server import page_table
from regulars.web.access import Role
from regulars.web.cookies import SESSION_HTTP
from sent_campaigns import fill_campaigns, make_campaigns

DATABASE = "bench_pages"
QUICK = Size(customers=500, sales=2_500, times=10, messages=10_000, runs=2_000)
REQUESTS = 15
WARM_REQUESTS = 2
MEDIAN_MS_MAX = 100.0
# Pages and files that wait for the analysis process.
ANALYSED_MS_MAX = 500.0
ANALYSED = re.compile(r"/customers\?(sort|last|texting)=.*|.*/analyse/(customers|products)(\.csv)?")
SLOWEST_NAMED = 3
# The crawl visits many addresses per page, to find pages that need a certain state; only the first are measured.
ADDRESSES_SEEN = 12
ADDRESSES_MEASURED = 2
ANALYSIS_S_MAX = 60.0
# Pages without a link to them: users get their address by mail, or they belong to an installation without users.
WITHOUT_A_LINK = re.compile(r"/link/.*|/sign-in.*|/first-run.*|.*\{token\}.*")
# Searches that users type.
TYPED = (
    "/search?q=dup",
    "/search?q=claire+dup",
    "/search?q=%2B3361",
    "/search?q=C-000100",
    "/search?q=nobody+has+this",
    "/customers?q=mar",
    "/customers?q=nobody+has+this",
)
FILTERED = (
    "/customers?sort=spend",
    "/customers?sort=last",
    "/customers?last=30",
    "/customers?last=-90&spend=200&sort=spend",
    "/customers?texting=may_be_texted&last=365&spend=500&sort=last",
)


@dataclass(frozen=True)
class PageTime:
    path: str
    median_ms: float
    slowest_ms: float
    # Processor time of server, analysis process and database; other load on the machine does not change it.
    processor_ms: float
    bytes: int
    # A streamed file is timed to its first bytes.
    is_file: bool = False


@dataclass(frozen=True)
class PageTimes:
    pages: list[PageTime]
    # Pages that the crawl did not reach, so that they were not measured.
    unseen: list[str]

    @property
    def missed(self) -> list[PageTime]:
        return [
            one
            for one in self.pages
            if one.median_ms > (ANALYSED_MS_MAX if ANALYSED.fullmatch(one.path) else MEDIAN_MS_MAX)
        ]


@dataclass(frozen=True)
class _Who:
    slug: str


@dataclass(frozen=True)
class _Answer:
    status_code: int
    headers: dict[str, str]
    text: str
    took_ms: float


class Reader:
    """The browser of one user: a keep-alive connection and a session."""

    def __init__(self, port: int, slug: str, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Cookie": f"{SESSION_HTTP}={token}"}
        self.who = _Who(slug)

    def get(self, path: str) -> _Answer:
        started = time.perf_counter()
        self._connection.request(
            "GET", path.removeprefix("/") if path.startswith("//") else path, headers=self._headers
        )
        response = self._connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        is_page = headers.get("content-type", "").startswith("text/html")
        # A file is streamed, and the user chooses its length.
        body = response.read() if is_page else response.read(1)
        took_ms = (time.perf_counter() - started) * 1000
        if not is_page:
            self._connection.close()
        return _Answer(response.status, headers, body.decode(errors="replace"), took_ms)


def measure(cluster: Cluster, say: Callable[[str], None], *, is_quick: bool) -> PageTimes:
    """Measures every page that the crawl reaches; returns the slowest first."""
    cluster.drop(DATABASE)
    cluster.execute(f"CREATE DATABASE {DATABASE}")
    url = cluster.url_of(DATABASE)
    migrate(url)
    size = QUICK if is_quick else LARGE
    started = time.monotonic()
    with _make_checkpoints_rare(cluster):
        organization_id = asyncio.run(fill_large(url, size, say))
        slug, token = asyncio.run(_create_owner(url, organization_id, size))
    say(f"everything is there after {time.monotonic() - started:.0f} s")
    with serving_pages(url) as (server, port, folder):
        _wait_for_analysis(folder)
        wait_until_started(server.pid)
        used = partial(processor_s, server.pid, cluster.postmaster_pid)
        return _read_all(Reader(port, slug, token), used)


@contextmanager
def serving_pages(url: str) -> Iterator[tuple[Server, int, Path]]:
    """Runs a server without a worker on this database; yields its port and its data folder."""
    with tempfile.TemporaryDirectory(prefix="regulars-bench-run-") as folder:
        port = free_port()
        environment = {
            "DATABASE_URL": url,
            "REGULARS_DATA_DIR": folder,
            "REGULARS_HOST": "127.0.0.1",
            "REGULARS_PORT": str(port),
            "REGULARS_LOG_LEVEL": "warning",
            "REGULARS_SECRET_KEY": "a key for this measurement, 32 characters or more",
        }
        with running_server(regulars_command(with_worker=False), environment, port=port) as server:
            yield server, port, Path(folder)


@contextmanager
def _make_checkpoints_rare(cluster: Cluster) -> Iterator[None]:
    """Makes checkpoints rare while millions of rows are inserted; the measurement uses the default settings."""
    cluster.execute("ALTER SYSTEM SET max_wal_size = '16GB'")
    cluster.execute("SELECT pg_reload_conf()")
    yield
    cluster.execute("ALTER SYSTEM RESET max_wal_size")
    cluster.execute("SELECT pg_reload_conf()")
    cluster.execute("CHECKPOINT")


def _wait_for_analysis(folder: Path) -> None:
    until = time.monotonic() + ANALYSIS_S_MAX
    while not socket_path(Settings(data_dir=folder)).exists():
        if time.monotonic() > until:
            raise TimeoutError(f"the process that counts segments was not there within {ANALYSIS_S_MAX:.0f} s")
        time.sleep(0.1)


def processor_s(*pids: int) -> float:
    return sum(map(cpu_s, pids))


def _read_all(reader: Reader, used: Callable[[], float]) -> PageTimes:
    """Measures each page at its first addresses, and keeps the slowest."""
    table = page_table(Settings())
    seen = crawl(reader, table, addresses=ADDRESSES_SEEN)  # type: ignore[arg-type]  # it only asks for get and who
    slowest: dict[str, PageTime] = {}
    measured_of: Counter[str] = Counter()
    for one in seen:
        measured_of[one.page.address] += 1
        if measured_of[one.page.address] > ADDRESSES_MEASURED:
            continue
        is_file = one.status == 200 and not one.is_html
        measured = time_page(reader, used, one.page.address, one.path, status=one.status, is_file=is_file)
        if measured.path not in slowest or slowest[measured.path].median_ms < measured.median_ms:
            slowest[measured.path] = measured
    typed = [
        time_page(reader, used, path, f"/o/{reader.who.slug}{path}", status=200, is_file=False)
        for path in (*TYPED, *FILTERED)
    ]
    left_out = [path for path in sorted(unreached_pages(seen, table)) if not WITHOUT_A_LINK.fullmatch(path)]
    return PageTimes(sorted([*slowest.values(), *typed], key=lambda one: -one.median_ms), left_out)


def time_page(
    reader: Reader, used: Callable[[], float], name: str, path: str, *, status: int, is_file: bool
) -> PageTime:
    for _ in range(WARM_REQUESTS):
        reader.get(path)
    before = used()
    answers = [reader.get(path) for _ in range(REQUESTS)]
    processor_ms = (used() - before) * 1000 / REQUESTS
    if any(answer.status_code != status for answer in answers) or status >= 400:
        raise RuntimeError(f"{path} answered {status}, then {[answer.status_code for answer in answers]}")
    took = [answer.took_ms for answer in answers]
    return PageTime(name, statistics.median(took), max(took), processor_ms, len(answers[0].text), is_file)


async def _create_owner(url: str, organization_id: UUID, size: Size) -> tuple[str, str]:
    """Creates an owner with a session, segments, counted catalogs and campaigns."""
    database = Database(url, pool_max=2, statement_timeout_ms=STATEMENT_TIMEOUT_MS)
    await database.open()
    try:
        async with database.transaction() as tx:
            person = await users.create_account(tx, email="owner@large.example", name="Owner")
            await users.join(tx, organization_id, "Large", person.id, Role.OWNER)
            token = await sessions.start_session(tx, person.id, is_remembered=True, address="127.0.0.1", agent="bench")
            [membership] = await users.find_memberships(tx, person.id)
            await counting.count_every_key(tx, organization_id, Catalog.ATTRIBUTES)
        await fill_segments(
            database, organization_id, customers=size.customers * size.times, sales=size.sales * size.times
        )
        campaigns = await make_campaigns(database, organization_id)
        with psycopg.connect(url, autocommit=True) as connection:
            fill_campaigns(connection, organization_id, campaigns, recipients=size.runs)
        queue = CountQueue({Catalog.ATTRIBUTES: AttributeValues(), Catalog.PRODUCTS: PropertyValues()})
        while await queue.run_pass(database, organization_id):
            pass
        return membership.slug, token
    finally:
        await database.close()


def show(times: PageTimes, say: Callable[[str], None]) -> None:
    width = max(len(one.path) for one in times.pages)
    for one in times.pages:
        shown = (
            f"median {one.median_ms:7.1f} ms   slowest {one.slowest_ms:7.1f} ms"
            f"   processor {one.processor_ms:6.1f} ms   {one.bytes:>9,} bytes"
        )
        kind = "   a file, to its first bytes" if one.is_file else ""
        say(f"{one.path:<{width}}  {shown}{kind}{'   OVER THE BAR' if one in times.missed else ''}")
    for path in times.unseen:
        say(f"{path:<{width}}  NOT SEEN: no link led to it")
    slowest = ", ".join(f"{one.path} ({one.median_ms:.0f} ms)" for one in times.pages[:SLOWEST_NAMED])
    say(f"{len(times.pages)} pages. The slowest three: {slowest}.")
    say(
        f"Every page within {MEDIAN_MS_MAX:.0f} ms at the median,"
        f" those of the analysis process within {ANALYSED_MS_MAX:.0f} ms:"
        f" {'reached' if is_reached(times) else 'MISSED'}."
    )


def is_reached(times: PageTimes) -> bool:
    return not times.missed and not times.unseen


def as_json(times: PageTimes) -> dict[str, Any]:
    return asdict(times)
