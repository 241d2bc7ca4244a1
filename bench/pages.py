"""How long the server takes for each page, on an organization of a million customers and five million sales, with a
million texts and a million deliveries of webhooks."""

import asyncio
import http.client
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.crawl import crawl

from database import Cluster
from large import LARGE, Size, fill_large
from processes import free_port, regulars_command, running_server, wait_until_settled
from regulars.accounts import people, sessions
from regulars.catalog.counts import ask
from regulars.catalog.counts.queue import CountQueue
from regulars.catalog.model import Catalog
from regulars.kit.db import Database
from regulars.kit.migrate import migrate
from regulars.kit.settings import Settings
from regulars.profiles.values import AttributeValues
from regulars.sales.values.read import PropertyValues
from regulars.server import page_table
from regulars.web.access import Role
from regulars.web.cookies import SESSION_HTTP

DATABASE = "bench_pages"
QUICK = Size(500, 2_500, 10, 10_000)
REQUESTS = 15
WARM_REQUESTS = 2
MEDIAN_MS_MAX = 100.0


@dataclass(frozen=True)
class PageTime:
    path: str
    median_ms: float
    slowest_ms: float
    bytes: int


@dataclass(frozen=True)
class _Who:
    slug: str


@dataclass(frozen=True)
class _Answer:
    status_code: int
    headers: dict[str, str]
    text: str
    took_ms: float


class _Reader:
    """One person's browser: a connection that stays open, and a session."""

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
        body = response.read()
        took_ms = (time.perf_counter() - started) * 1000
        headers = {name.lower(): value for name, value in response.getheaders()}
        return _Answer(response.status, headers, body.decode(errors="replace"), took_ms)


def measure(cluster: Cluster, say: Callable[[str], None], *, is_quick: bool) -> list[PageTime]:
    """Every page that a link leads to, the slowest first."""
    cluster.drop(DATABASE)
    cluster.execute(f"CREATE DATABASE {DATABASE}")
    url = cluster.url_of(DATABASE)
    migrate(url)
    organization_id = asyncio.run(fill_large(url, QUICK if is_quick else LARGE, say))
    slug, token = asyncio.run(_enter(url, organization_id))
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
            wait_until_settled(server.pid)
            return _read_all(_Reader(port, slug, token))


def _read_all(reader: _Reader) -> list[PageTime]:
    # The first address of each page that a link led to.
    seen = {one.page: one for one in reversed(crawl(reader, page_table(Settings())))}  # type: ignore[arg-type]  # it only asks for get and who
    times = []
    for page, one in seen.items():
        answers = [reader.get(one.path) for _ in range(WARM_REQUESTS + REQUESTS)][WARM_REQUESTS:]
        if any(answer.status_code != one.status for answer in answers) or one.status >= 400:
            raise RuntimeError(f"{one.path} answered {one.status}, then {[answer.status_code for answer in answers]}")
        took = [answer.took_ms for answer in answers]
        times.append(PageTime(page.address, statistics.median(took), max(took), len(answers[0].text)))
    return sorted(times, key=lambda one: -one.median_ms)


async def _enter(url: str, organization_id: UUID) -> tuple[str, str]:
    """An owner with a session; and the catalogs counted, as somebody who uses them would have done."""
    database = Database(url, pool_max=2, statement_timeout_ms=600_000)
    await database.open()
    try:
        async with database.transaction() as tx:
            person = await people.create_person(tx, email="owner@large.example", name="Owner")
            await people.join(tx, organization_id, "Large", person.id, Role.OWNER)
            token = await sessions.start_session(tx, person.id, is_kept=True, address="127.0.0.1", agent="bench")
            [membership] = await people.find_memberships(tx, person.id)
            await ask.count_every_key(tx, organization_id, Catalog.ATTRIBUTES)
        queue = CountQueue({Catalog.ATTRIBUTES: AttributeValues(), Catalog.PRODUCTS: PropertyValues()})
        while await queue.take_turn(database, organization_id):
            pass
        return membership.slug, token
    finally:
        await database.close()


def show(times: Sequence[PageTime], say: Callable[[str], None]) -> None:
    width = max(len(one.path) for one in times)
    for one in times:
        times_shown = f"median {one.median_ms:7.1f} ms   slowest {one.slowest_ms:7.1f} ms"
        say(f"{one.path:<{width}}  {times_shown}   {one.bytes:>9,} bytes")
    slowest = ", ".join(f"{one.path} ({one.median_ms:.0f} ms)" for one in times[:3])
    verdict = "reached" if times[0].median_ms <= MEDIAN_MS_MAX else "missed"
    say(f"The slowest three: {slowest}. Every page within {MEDIAN_MS_MAX:.0f} ms at the median: {verdict}.")


def as_json(times: Sequence[PageTime]) -> list[dict[str, Any]]:
    return [asdict(one) for one in times]
