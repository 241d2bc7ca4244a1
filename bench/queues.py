"""Measures the worker's loop: the cost of 10,000 idle organizations, and the wait of one beside a long backlog."""

import asyncio
import time
from collections.abc import Callable
from uuid import UUID, uuid4

import psycopg

from database import Cluster
from processes import cpu_s, wait_until_started
from regulars.kit.db import Database
from regulars.sales.facts import SalesRecorded
from regulars.work import outbox
from regulars.work.wake import Waker
from webhooks import worker

IDLE_ORGANIZATIONS = 10_000
BACKLOG_ROWS = 1_000_000
PROBES = 100
Say = Callable[[str], None]

_ORGANIZATIONS = """
INSERT INTO organizations (id, name, secret, created_at)
SELECT gen_random_uuid(), 'idle ' || n, decode(repeat('00', 32), 'hex'), now()
FROM generate_series(1, %s) n
"""
# Ids in the order of time, as the application makes them.
_BACKLOG = """
INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
SELECT %s, ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'sales.recorded',
    json_build_array(json_build_object('sales', json_build_array(gen_random_uuid()))), now(), now()
FROM generate_series(1, %s) n
"""
_FIRST = UUID("01900000-0000-7000-8000-000000000001")


def measure(cluster: Cluster, *, seconds: int, say: Say) -> None:
    url = cluster.clone("queues")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_ORGANIZATIONS, (IDLE_ORGANIZATIONS,))
    with worker(url) as pid:
        wait_until_started(pid)
        share = _cpu_share(cluster, pid, seconds)
    say(f"queues: {IDLE_ORGANIZATIONS:,} idle organizations cost {share:.1%} of a core over {seconds} s (bar: 2 %)")
    busy = uuid4()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_BACKLOG, (busy, BACKLOG_ROWS))
        connection.execute("ANALYZE outbox")
    with worker(url):
        waits = asyncio.run(_probe(url, busy))
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT count(*) FROM outbox WHERE organization_id = %s", (busy,)).fetchone()
    left = row[0] if row else 0
    middle = sorted(waits)[len(waits) // 2]
    say(f"queues: beside {BACKLOG_ROWS:,} waiting rows another's fact took effect after {middle * 1000:.0f} ms in the")
    say(f"        median, {max(waits) * 1000:.0f} ms at worst of {PROBES} (bar: 2 s); {left:,} of the backlog are left")


def _cpu_share(cluster: Cluster, pid: int, seconds: int) -> float:
    def used() -> float:
        return cpu_s(pid) + cpu_s(cluster.postmaster_pid)

    before = used()
    time.sleep(seconds)
    return (used() - before) / seconds


async def _probe(url: str, busy: UUID) -> list[float]:
    """While the worker handles the backlog, records facts and notifies the worker as a server does, and times each."""
    database = Database(url)
    await database.open()
    waker = Waker(database)
    await waker.open()
    database.after_commit = waker.wake
    waits = []
    while await _is_first_waiting(database, busy):  # noqa: ASYNC110  # what is waited for is in the database
        await asyncio.sleep(0.2)
    for _ in range(PROBES):
        organization_id = uuid4()
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [SalesRecorded([uuid4()])])
        started = time.monotonic()
        while await _waits(database, organization_id):  # noqa: ASYNC110  # what is waited for is in the database
            await asyncio.sleep(0.005)
        waits.append(time.monotonic() - started)
        await asyncio.sleep(0.05)
    await waker.close()
    await database.close()
    return waits


async def _is_first_waiting(database: Database, organization_id: UUID) -> bool:
    """Whether the worker has not handled the oldest row yet, because it is still starting."""
    async with database.reading() as tx:
        return bool(
            await tx.fetch("SELECT 1 FROM outbox WHERE organization_id = %s AND id = %s", (organization_id, _FIRST))
        )


async def _waits(database: Database, organization_id: UUID) -> bool:
    async with database.reading() as tx:
        return bool(await tx.fetch("SELECT 1 FROM outbox WHERE organization_id = %s", (organization_id,)))
