"""Measures the cost of organizations whose columns are not in use."""

import asyncio
import time

import psutil

from database import Cluster
from processes import cpu_s, free_port, regulars_command, running_server, wait_until_started
from regulars.columns import lifecycle
from regulars.kit.db import Database

IDLE_ORGANIZATIONS, WITH_SEGMENTS = 10_000, 20


def measure_idling(cluster: Cluster, url: str, folder: str, *, seconds: float) -> dict[str, float]:
    """Measures the share of a core that each process uses while idle."""
    asyncio.run(_make_idle(url))
    port = free_port()
    environment = {"DATABASE_URL": url, "REGULARS_SECRET_KEY": "k" * 40, "REGULARS_PORT": str(port)}
    with running_server(
        regulars_command(with_worker=True), {**environment, "REGULARS_DATA_DIR": folder}, port=port
    ) as server:
        time.sleep(5)
        wait_until_started(server.pid)
        before = _by_process(server.pid, cluster.postmaster_pid)
        time.sleep(seconds)
        after = _by_process(server.pid, cluster.postmaster_pid)
    return {name: (used - before.get(name, 0.0)) / seconds for name, used in after.items()}


def _by_process(server_pid: int, postmaster_pid: int) -> dict[str, float]:
    """Processor time so far of the server, of each child process by its command, and of the database."""
    used = {"server": cpu_s(server_pid), "database": cpu_s(postmaster_pid)}
    for child in psutil.Process(server_pid).children():
        name = child.cmdline()[3]
        used[name] = cpu_s(child.pid)
        used["server"] -= used[name]
    return used


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
                await lifecycle.begin(tx, organization_id)
    finally:
        await database.close()
