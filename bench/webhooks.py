"""Measures webhooks: deliveries per second, their delay after the commit, and their cost for a write."""

import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import httpx
import psycopg

from database import Cluster, Organization
from processes import ROOT, cpu_s, free_port, regulars_command, running_server, wait_until_started
from regulars.kit.db import Database
from regulars.kit.ssrf import AddressPolicy
from regulars.kit.vault import Vault
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles
from regulars.webhooks.manage import create_endpoint

KEY = "the key of the benchmark, which guards nothing"
ENVIRONMENT = {"REGULARS_SECRET_KEY": KEY, "REGULARS_WEBHOOK_ALLOW": "127.0.0.0/8", "REGULARS_RATE_LIMIT_PER_S": "0"}
DELIVERIES = 10_000
CONNECTIONS = 32
TURNS = 3
Say = Callable[[str], None]


def measure(cluster: Cluster, organization: Organization, *, seconds: int, say: Say) -> None:
    for endpoints in (1, 4):
        rate, worker_us, database_us = _throughput(cluster, organization, endpoints)
        say(f"webhooks: {rate:,.0f} deliveries/s to {endpoints} endpoint(s) (bar: 500), each {worker_us:.0f} µs of the")
        say(f"          worker's and {database_us:.0f} µs of the database's processor time")
    none, one = _write_cost(cluster, organization, seconds)
    say(f"webhooks: profile upserts {none:,.0f}/s without an endpoint, {one:,.0f}/s with one and no worker,")
    say(f"          ratio {one / none:.2f} (bar: 0.7)")
    rate = none / 4
    delays = _latency(cluster, organization, rate=rate, seconds=seconds)
    middle, high = statistics.median(delays), sorted(delays)[int(len(delays) * 0.99)]
    say(f"webhooks: at {rate:,.0f} upserts/s first attempts came {middle * 1000:.0f} ms after the answer in the median")
    say(f"          (bar: 1 s), {high * 1000:.0f} ms at the 99th percentile, {len(delays):,} measured")


def _throughput(cluster: Cluster, organization: Organization, endpoints: int) -> tuple[float, float, float]:
    """Measures deliveries of waiting facts per second, and the cost of one for worker and database."""
    url = cluster.clone("webhooks")
    with receiver() as (address, came):
        asyncio.run(prepare(url, organization, address, endpoints=endpoints, profiles=DELIVERIES // endpoints))
        database_before = cpu_s(cluster.postmaster_pid)
        with worker(url) as pid:
            started_with = cpu_s(pid)
            _wait_until_delivered(url, DELIVERIES)
            worker_us = (cpu_s(pid) - started_with) / DELIVERIES * 1e6
        database_us = (cpu_s(cluster.postmaster_pid) - database_before) / DELIVERIES * 1e6
        moments = sorted(moment for _, moment in came())
    # A new endpoint gets its first deliveries one at a time.
    return (len(moments) - 100) / (moments[-1] - moments[100]), worker_us, database_us


def _write_cost(cluster: Cluster, organization: Organization, seconds: int) -> tuple[float, float]:
    """Measures upserts by 32 connections, alternately with and without an endpoint, without a worker."""
    rates: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(TURNS):
        for endpoints, measured in rates.items():
            url = cluster.clone("webhooks")
            asyncio.run(prepare(url, organization, "http://127.0.0.1:9/", endpoints=endpoints, profiles=0))
            with _server(url, with_worker=False) as base:
                measured.append(asyncio.run(_upsert_for(base, organization, seconds=seconds)))
    return statistics.median(rates[0]), statistics.median(rates[1])


def _latency(cluster: Cluster, organization: Organization, *, rate: float, seconds: int) -> list[float]:
    """Measures the time from the response to an upsert, after its commit, to the arrival of its event."""
    url = cluster.clone("webhooks")
    with receiver() as (address, came):
        asyncio.run(prepare(url, organization, address, endpoints=1, profiles=0))
        with _server(url, with_worker=True) as base:
            answered = asyncio.run(_upsert_at(base, organization, rate=rate, seconds=seconds))
            _wait_until_delivered(url, len(answered))
        return [moment - answered[name] for name, moment in came() if name in answered]


async def prepare(url: str, organization: Organization, address: str, *, endpoints: int, profiles: int) -> None:
    database = Database(url)
    await database.open()
    owner = UUID(organization.id)
    policy, vault = AddressPolicy(["127.0.0.0/8"]), Vault(KEY)
    for _ in range(endpoints):
        async with database.transaction() as tx:
            await create_endpoint(tx, owner, url=address, policy=policy, vault=vault)
    for first in range(0, profiles, 500):
        batch = [ProfileUpsert(external_id=f"W{number}") for number in range(first, min(first + 500, profiles))]
        async with database.transaction() as tx:
            await upsert_profiles(tx, owner, batch)
    await database.close()


async def _upsert_for(base: str, organization: Organization, *, seconds: int) -> float:
    numbers = itertools.count()
    done = 0
    async with _client(base, organization) as client:
        end = time.monotonic() + seconds

        async def upsert() -> None:
            nonlocal done
            while time.monotonic() < end:
                await _post(client, f"N{next(numbers)}")
                done += 1

        await asyncio.gather(*(upsert() for _ in range(CONNECTIONS)))
    return done / seconds


async def _upsert_at(base: str, organization: Organization, *, rate: float, seconds: int) -> dict[str, float]:
    answered: dict[str, float] = {}

    async def upsert(client: httpx.AsyncClient, name: str) -> None:
        await _post(client, name)
        answered[name] = time.time()

    async with _client(base, organization) as client, asyncio.TaskGroup() as group:
        started = time.monotonic()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
            group.create_task(upsert(client, f"L{number}"))
    return answered


def _client(base: str, organization: Organization) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    return httpx.AsyncClient(base_url=base, headers={"x-api-key": organization.key}, limits=limits, timeout=30)


async def _post(client: httpx.AsyncClient, external_id: str) -> None:
    response = await client.post("/v1/profiles", json={"external_id": external_id})
    response.raise_for_status()


def _wait_until_delivered(url: str, count: int) -> None:
    deadline = time.monotonic() + 300
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            row = connection.execute("SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'").fetchone()
            if row is not None and row[0] >= count:
                return
            time.sleep(0.5)
    raise RuntimeError(f"{count} deliveries did not arrive within 300 s")


@contextmanager
def receiver() -> Iterator[tuple[str, Callable[[], list[tuple[str, float]]]]]:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "bench" / "load" / "receiver.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    port = int(process.stdout.readline())

    def came() -> list[tuple[str, float]]:
        out, _ = process.communicate()
        pairs = [line.split(" ") for line in out.splitlines()]
        return [(name, float(moment)) for name, moment in pairs]

    try:
        yield f"http://127.0.0.1:{port}/", came
    finally:
        process.kill()


@contextmanager
def _server(url: str, *, with_worker: bool) -> Iterator[str]:
    port = free_port()
    environment = {**ENVIRONMENT, "DATABASE_URL": url, "REGULARS_PORT": str(port), "REGULARS_LOG_LEVEL": "warning"}
    with running_server(regulars_command(with_worker=with_worker), environment, port=port) as server:
        # The worker is still starting when the server responds.
        wait_until_started(server.pid)
        yield server.url


@contextmanager
def worker(url: str) -> Iterator[int]:
    """Runs only the worker; yields its process id."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
    environment |= {**ENVIRONMENT, "DATABASE_URL": url, "PYTHONPATH": str(ROOT / "src"), "REGULARS_LOG_LEVEL": "error"}
    process = subprocess.Popen([sys.executable, "-m", "regulars.cli", "worker"], env=environment, cwd=ROOT)
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
