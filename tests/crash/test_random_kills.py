"""PostgreSQL's processes killed at random beneath two server processes under load: each time all of them answer again.

bin/test tests/crash/test_random_kills.py --crash-rounds 200 --timeout 3000 -s
"""

import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import psycopg
from tests.cli.test_serve import Serving, serving
from tests.crash import checker
from tests.crash.clients import STORE, settle, trading
from tests.crash.conftest import Durable
from tests.crash.journal import Journal
from tests.crash.test_crash import explained, journal
from tests.support import samples
from tests.support.commands import postmaster_pid
from tests.support.tenant import new_tenant

from regulars.postgres import embedded

__all__ = ["journal"]

VICTIMS = ("client backend", "client backend", "client backend", "checkpointer", "walwriter", "postmaster")
PROBES = 12
ANSWER_SECONDS_MAX = 15
RECOVERY_SECONDS_MAX = 60


@dataclass(frozen=True)
class Address:
    """What the tills need to know of a server."""

    address: tuple[str, int]


def test_whatever_dies_of_postgresql_no_server_process_stops_answering(
    durable: Durable, journal: Journal, rounds: int, seed: int
) -> None:
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    slowest_s = 0.0
    folder = durable.data_dir.parent / "serve"
    with (
        explained(seed, journal),
        serving(
            folder, "--workers", "2", "--no-worker", DATABASE_URL=durable.url, REGULARS_RATE_LIMIT_PER_S="0"
        ) as server,
    ):
        key = new_tenant(durable.url).key
        assert _post(server, key, "/v1/stores", samples.store(external_id=STORE)) == 201
        at = Address((urlsplit(server.url).hostname or "", urlsplit(server.url).port or 0))
        with trading(seed=seed, server=at, api_key=key, journal=journal):  # type: ignore[arg-type]  # it has the address
            for number in range(rounds):
                time.sleep(chance.uniform(0.0, 0.5))
                victim = chance.choice(VICTIMS)
                journal.note(round=number, victim=victim)
                if _kill(victim, durable, chance):
                    killed[victim] += 1
                slowest_s = max(slowest_s, _wait_until_all_answer(server, key))
        settle(server=at, api_key=key, journal=journal)  # type: ignore[arg-type]  # it has the address
        checker.check(durable.url, journal)
        assert server.stop() == 0
    print(f"{killed.total()} kills ({dict(killed)}), slowest recovery {slowest_s:.1f} s")  # noqa: T201  # for whoever asked for more kills


def _kill(victim: str, durable: Durable, chance: random.Random) -> bool:
    """Kill one such process; a postmaster is started again, as whoever keeps it would."""
    if victim == "postmaster":
        os.kill(postmaster_pid(durable.data_dir), signal.SIGKILL)
        time.sleep(chance.uniform(0.0, 0.5))
        embedded.ensure_running(durable.data_dir)
        return True
    try:
        with psycopg.connect(durable.url, connect_timeout=5) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = %s AND pid <> pg_backend_pid()", (victim,)
            ).fetchall()
        os.kill(chance.choice(rows)[0], signal.SIGKILL)
    except (psycopg.OperationalError, ProcessLookupError, IndexError):
        # It is still recovering from the last one.
        return False
    return True


def _wait_until_all_answer(server: Serving, key: str) -> float:
    """Every caller is answered in time, and before long all with success; gives how long that took."""
    started = time.monotonic()
    while True:
        with ThreadPoolExecutor(PROBES) as callers:
            statuses = list(
                callers.map(lambda _: _post(server, key, "/v1/sales-events", samples.sale(STORE)), range(PROBES))
            )
        assert None not in statuses, f"somebody got no answer: {statuses}"
        assert set(statuses) <= {201, 503}, statuses
        if set(statuses) == {201}:
            return time.monotonic() - started
        assert time.monotonic() - started < RECOVERY_SECONDS_MAX, statuses
        time.sleep(0.1)


def _post(server: Serving, key: str, path: str, body: dict[str, object]) -> int | None:
    try:
        headers = {"x-api-key": key}
        return httpx.post(server.url + path, json=body, headers=headers, timeout=ANSWER_SECONDS_MAX).status_code
    except httpx.TimeoutException:
        return None
