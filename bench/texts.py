"""Measures texts: the cost of one, how fast the queue empties (with the simulator) beside a server under load, and the
cost of a million waiting texts."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from database import Cluster, Organization, make_templates
from latency import open_loop
from load import wrk
from processes import ROOT, cpu_s, free_port, regulars_command, running_server
from regulars.consent.ledger import EventOrigin
from regulars.consent.opt_in import Consent, opt_in
from regulars.kit.db import Database, Tx
from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.organizations.manage import create_organization
from regulars.texts.request import TextOrder, request_texts
from regulars.texts.settings.model import OpenHours, SendHoursRule, SmsSettings
from regulars.texts.settings.store import Texting, load_texting, save_texting
from scenarios import CONNECTIONS, Scenario, start
from text_cost import measure_costs

DATABASE = "bench_texts"
TEXTS = 10_000
WAITING = 1_000_000
QUICK_WAITING = 20_000
IDLE_S = 60.0
QUICK_IDLE_S = 5.0
DEADLINE_S = 300.0
LOAD_S = 75
QUICK_LOAD_S = 12
LOAD_STARTS_S = 3.0
CHUNK = 500
ALWAYS = SendHoursRule(days=(OpenHours(0, 24 * 60),) * 7, on_holidays=True)

Say = Callable[[str], None]


@dataclass(frozen=True)
class TextTimes:
    texts: int
    took_s: float
    beside_sales_per_s: float
    sales_p99_ms: float
    waiting: int
    idle_s: float
    idle_core_share: float
    # Processor time per text of worker and database, by source: this one and another commit.
    cost_ms: dict[str, float]


def measure(cluster: Cluster, say: Say, *, is_quick: bool, beside: Mapping[str, Path] | None = None) -> TextTimes:
    wrk.ensure_installed()
    sources = {"this": ROOT / "src", **(beside or {})}
    cost_ms = measure_costs(cluster, say, sources, texts=500 if is_quick else 4_000, rounds=1 if is_quick else 3)
    neighbour = make_templates(cluster)[0]
    url = cluster.clone(DATABASE)
    texts = 500 if is_quick else TEXTS
    load_s = QUICK_LOAD_S if is_quick else LOAD_S
    highest = _highest_rate(cluster, neighbour, say)
    organization_id = asyncio.run(_prepare(url, say))
    port = free_port()
    environment = {
        "DATABASE_URL": url,
        "REGULARS_SECRET_KEY": "k" * 40,
        "REGULARS_PORT": str(port),
        "REGULARS_RATE_LIMIT_PER_S": "0",
    }
    command = regulars_command(with_worker=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(command, {**environment, "REGULARS_DATA_DIR": folder}, port=port) as server,
    ):
        with ThreadPoolExecutor(1) as loader:
            # The load begins before the texts and ends after them, if they are on time.
            loading = loader.submit(
                open_loop, server.port, neighbour.key, rate=highest / 4, seconds=load_s, name="texts"
            )
            time.sleep(LOAD_STARTS_S)
            asyncio.run(_order_all(url, organization_id, texts))
            started = time.monotonic()
            asyncio.run(_wait_until_sent(url, organization_id, texts))
            took_s = time.monotonic() - started
            is_loaded = not loading.done()
            load = loading.result()
        say(
            f"{texts} texts left in {took_s:.1f} s ({texts / took_s:.0f}/s) beside {highest / 4:.0f} sales a second"
            f" (p99 {load['p99_ms']:.0f} ms, {load['errors']:.0f} errors)"
            + ("" if is_loaded else "; the load ended before the texts did")
        )
        waiting = QUICK_WAITING if is_quick else WAITING
        asyncio.run(_insert_waiting(url, organization_id, waiting))
        time.sleep(2)
        idle_s = QUICK_IDLE_S if is_quick else IDLE_S
        before = cpu_s(server.pid) + cpu_s(cluster.postmaster_pid)
        time.sleep(idle_s)
        share = (cpu_s(server.pid) + cpu_s(cluster.postmaster_pid) - before) / idle_s
    say(f"{waiting} texts that wait for tomorrow cost {share:.1%} of a core over {idle_s:.0f} s")
    return TextTimes(texts, took_s, highest / 4, load["p99_ms"], waiting, idle_s, share, cost_ms)


def _highest_rate(cluster: Cluster, neighbour: Organization, say: Say) -> float:
    """The highest rate of the API without other work."""
    url = cluster.clone(f"{DATABASE}_rate")
    with start(Scenario("sales", "sales", "regulars"), url) as server:
        wrk.run(server.url, "sales", name="tw", keys=[neighbour.key], connections=CONNECTIONS, seconds=2)
        load = wrk.run(server.url, "sales", name="t", keys=[neighbour.key], connections=CONNECTIONS, seconds=5)
    cluster.drop(f"{DATABASE}_rate")
    say(f"the API takes {load.rate:.0f} sales a second by itself")
    return load.rate


def show(times: TextTimes, say: Say) -> None:
    rate = times.texts / times.took_s
    for source, cost in times.cost_ms.items():
        say(f"{source}: {cost:.3f} ms of processor time a text in worker and database")
    say(f"{rate:.0f} texts a second; {times.waiting} that wait cost {times.idle_core_share:.1%} of a core")


def as_json(times: TextTimes) -> dict[str, Any]:
    return asdict(times)


async def _prepare(url: str, say: Say) -> UUID:
    """Creates an organization without sending hours."""
    database = Database(url, pool_max=4)
    await database.open()
    try:
        async with database.connection() as connection:
            organization = await create_organization(connection, "Texts")
        async with database.transaction() as tx:
            found = await load_texting(tx, organization.id)
            assert found is not None
            texting = replace(found, settings=SmsSettings(brand="Shop", rules={"FR": ALWAYS}))
            await save_texting(tx, organization.id, texting)
        for start in range(0, TEXTS, CHUNK):
            async with database.transaction() as tx:
                consents = [
                    Consent(phone_number=it, source="OTHER", consented_at=tx.now, origin=EventOrigin())
                    for it in _numbers(start, TEXTS)
                ]
                await opt_in(tx, organization.id, consents, secret=texting.secret)
        say(f"{TEXTS} numbers have consented")
        return organization.id
    finally:
        await database.close()


def _numbers(start: int, texts: int) -> list[str]:
    return [f"+336{10_000_000 + it:08d}" for it in range(start, min(start + CHUNK, texts))]


async def _order_all(url: str, organization_id: UUID, texts: int) -> None:
    """Requests all texts in one transaction, so that the clock starts when all are queued."""
    database = Database(url, pool_max=2)
    await database.open()
    try:
        async with database.transaction() as tx:
            texting = await load_texting(tx, organization_id)
            assert texting is not None
            for start in range(0, texts, CHUNK):
                await _order(tx, organization_id, texting, _numbers(start, texts))
    finally:
        await database.close()


async def _order(tx: Tx, organization_id: UUID, texting: Texting, numbers: list[str]) -> None:
    orders = [
        TextOrder(origin_kind=OriginKind.CAMPAIGN, origin_id=new_uuid(), step="1", rendered="Hello", phone_number=it)
        for it in numbers
    ]
    await request_texts(tx, organization_id, orders, texting=texting)


async def _wait_until_sent(url: str, organization_id: UUID, texts: int) -> None:
    database = Database(url, pool_max=2)
    await database.open()
    try:
        until = time.monotonic() + DEADLINE_S
        while time.monotonic() < until:
            async with database.transaction() as tx:
                rows = await tx.fetch(
                    "SELECT count(*) FROM texts WHERE organization_id = %s AND state = 'sent'", (organization_id,)
                )
            if rows[0][0] == texts:
                return
            await asyncio.sleep(0.25)
        raise TimeoutError(f"Only {rows[0][0]} of {texts} texts left within {DEADLINE_S:.0f} s.")
    finally:
        await database.close()


async def _insert_waiting(url: str, organization_id: UUID, waiting: int) -> None:
    database = Database(url, pool_max=2, statement_timeout_ms=600_000)
    await database.open()
    try:
        async with database.transaction() as tx:
            await tx.execute(
                """
                INSERT INTO texts
                    (organization_id, id, origin_kind, origin_id, step, number_hash, phone_number, body, parts, state,
                     due_at, expires_at, created_at)
                SELECT %(organization_id)s, gen_random_uuid(), 'campaign', gen_random_uuid(), '1', '\\x00',
                       '+33600000000', 'Hello', 1, 'queued', %(due_at)s, %(due_at)s, %(now)s
                FROM generate_series(1, %(waiting)s)
                """,
                {
                    "organization_id": organization_id,
                    "due_at": tx.now + timedelta(days=1),
                    "now": tx.now,
                    "waiting": waiting,
                },
            )
    finally:
        await database.close()
