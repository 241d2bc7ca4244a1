"""Measures the processor time per text of worker and database, with the simulator, for several sources in turns.

Each source fills and serves its own database with its own code, in a second process of this file.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import psycopg

from database import Cluster
from processes import cpu_s, wait_until_started
from regulars.consent.ledger import EventOrigin
from regulars.consent.opt_in import Consent, opt_in
from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.kit.migrate import migrate
from regulars.links.origin_kind import OriginKind
from regulars.organizations.manage import create_organization
from regulars.texts.request import TextOrder, request_texts
from regulars.texts.settings.model import OpenHours, SendHoursRule, SmsSettings
from regulars.texts.settings.store import load_texting, save_texting

CHUNK = 500
DEADLINE_S = 240.0
POLL_S = 0.5
ALWAYS = SendHoursRule(days=(OpenHours(0, 24 * 60),) * 7, on_holidays=True)


def measure_costs(
    cluster: Cluster, say: Callable[[str], None], sources: Mapping[str, Path], *, texts: int, rounds: int
) -> dict[str, float]:
    """Milliseconds per text by source, the median of the rounds."""
    found: dict[str, list[float]] = {name: [] for name in sources}
    for turn in range(rounds):
        for name in sorted(sources, reverse=bool(turn % 2)):
            worker_ms, database_ms = _measure(cluster, sources[name], texts)
            found[name].append(worker_ms + database_ms)
            say(f"{name}: worker {worker_ms:.3f} + database {database_ms:.3f} ms a text")
    return {name: statistics.median(costs) for name, costs in found.items()}


def _measure(cluster: Cluster, source: Path, texts: int) -> tuple[float, float]:
    database = "bench_text_cost"
    cluster.drop(database)
    cluster.execute(f'CREATE DATABASE "{database}"')
    url = cluster.url_of(database)
    known = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
    environment = {
        **known,
        "PYTHONPATH": f"{source}:{Path(__file__).parent}",
        "DATABASE_URL": url,
        "REGULARS_SECRET_KEY": "k" * 40,
    }
    fill = [sys.executable, __file__, url, str(texts)]
    subprocess.run([*fill, "prepare"], env=environment, check=True)
    with tempfile.TemporaryDirectory() as folder:
        worker = subprocess.Popen(
            [sys.executable, "-m", "regulars.cli", "worker"],
            env={**environment, "REGULARS_DATA_DIR": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until_started(worker.pid)
            subprocess.run([*fill, "order"], env=environment, check=True)
            before = cpu_s(worker.pid), cpu_s(cluster.postmaster_pid)
            _wait_until_sent(url, texts)
            after = cpu_s(worker.pid), cpu_s(cluster.postmaster_pid)
        finally:
            worker.terminate()
            worker.wait(30)
    cluster.drop(database)
    return (after[0] - before[0]) * 1000 / texts, (after[1] - before[1]) * 1000 / texts


def _wait_until_sent(url: str, texts: int) -> None:
    until = time.monotonic() + DEADLINE_S
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < until:
            row = connection.execute("SELECT count(*) FROM texts WHERE state = 'sent'").fetchone()
            if row is not None and row[0] == texts:
                return
            time.sleep(POLL_S)
    raise TimeoutError(f"Not all of {texts} texts left within {DEADLINE_S:.0f} s.")


def _numbers(start: int, texts: int) -> list[str]:
    return [f"+336{10_000_000 + it:08d}" for it in range(start, min(start + CHUNK, texts))]


async def _prepare(url: str, texts: int) -> None:
    database = Database(url, pool_max=4)
    await database.open()
    async with database.connection() as connection:
        organization = await create_organization(connection, "Texts")
    async with database.transaction() as tx:
        found = await load_texting(tx, organization.id)
        assert found is not None
        texting = replace(found, settings=SmsSettings(brand="Shop", rules={"FR": ALWAYS}))
        await save_texting(tx, organization.id, texting)
    for start in range(0, texts, CHUNK):
        async with database.transaction() as tx:
            consents = [
                Consent(phone_number=it, source="OTHER", consented_at=tx.now, origin=EventOrigin())
                for it in _numbers(start, texts)
            ]
            await opt_in(tx, organization.id, consents, secret=texting.secret)
    async with database.connection() as connection:
        await connection.execute("VACUUM ANALYZE")
    await database.close()


async def _order(url: str, texts: int) -> None:
    database = Database(url, pool_max=2)
    await database.open()
    async with database.transaction() as tx:
        [(organization_id,)] = await tx.fetch("SELECT id FROM organizations")
        texting = await load_texting(tx, organization_id)
        assert texting is not None
        for start in range(0, texts, CHUNK):
            orders = [
                TextOrder(
                    origin_kind=OriginKind.CAMPAIGN, origin_id=new_uuid(), step="1", rendered="Hello", phone_number=it
                )
                for it in _numbers(start, texts)
            ]
            await request_texts(tx, organization_id, orders, texting=texting)
    await database.close()


if __name__ == "__main__":
    if sys.argv[3] == "prepare":
        migrate(sys.argv[1])
        asyncio.run(_prepare(sys.argv[1], int(sys.argv[2])))
    else:
        asyncio.run(_order(sys.argv[1], int(sys.argv[2])))
