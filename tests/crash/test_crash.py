"""What `kill -9` may not break: of the server at random moments under load, and of PostgreSQL itself.

A failure prints its seed and keeps its journal. The seed repeats the traffic and the moments of the kills, though not
the interleaving of the processes:

    bin/test tests/crash --crash-seed 1234
    bin/test tests/crash --crash-rounds 20
"""

import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.crash import checker
from tests.crash.clients import BATCHES, STORE, settle, trading
from tests.crash.conftest import Durable
from tests.crash.journal import Journal
from tests.support import samples
from tests.support.commands import postmaster_pid
from tests.support.raw import send
from tests.support.server import Server, running_server
from tests.support.tenant import new_tenant

from regulars.postgres import embedded

RECOVERY_SECONDS_MAX = 30


@pytest.fixture
def journal() -> Journal:
    handle, name = tempfile.mkstemp(prefix="regulars-crash-", suffix=".jsonl")
    os.close(handle)
    return Journal(Path(name))


@contextmanager
def explained(seed: int, journal: Journal) -> Iterator[None]:
    """Say how to repeat a failure, and clear up after a success."""
    journal.note(seed=seed)
    try:
        yield
    except BaseException as error:
        error.add_note(f"Repeat with --crash-seed {seed}; the journal is {journal.file}")
        raise
    journal.file.unlink()


def open_store(server: Server, api_key: str) -> None:
    headers = [(b"x-api-key", api_key.encode()), (b"content-type", b"application/json")]
    body = samples.json_bytes(samples.store(external_id=STORE))
    assert send(server.address, "POST", "/v1/stores", headers=headers, body=body).status == 201


def wait_for_success(journal: Journal) -> None:
    """Until the clients get through again."""
    before = len(journal.answers)
    deadline = time.monotonic() + RECOVERY_SECONDS_MAX
    while not any(answer.is_success for answer in journal.answers[before:]):
        assert time.monotonic() < deadline, "the server does not recover"
        time.sleep(0.05)


def test_a_server_killed_under_load_loses_nothing_it_acknowledged_and_does_nothing_twice(
    durable: Durable, journal: Journal, rounds: int, seed: int
) -> None:
    chance = random.Random(seed)
    with explained(seed, journal), running_server(durable.url, rate_limit_per_s="0") as server:
        api_key = new_tenant(durable.url).key
        open_store(server, api_key)
        with trading(seed=seed, server=server, api_key=api_key, journal=journal):
            for number in range(rounds):
                wait_for_success(journal)
                wait_s = chance.uniform(0.05, 1.0)
                journal.note(round=number, killed_after_s=wait_s)
                time.sleep(wait_s)
                server.kill()
                checker.check(durable.url, journal)
                server.start()
            wait_for_success(journal)
        settle(server=server, api_key=api_key, journal=journal)
        checker.check(durable.url, journal)
        seen = Counter(answer.status for answer in journal.answers)
        assert set(seen) <= {200, 201, 400, 404, 503}, seen
        assert min(seen[201], seen[200], seen[400], seen[404]) > 0, seen
        assert any(answer.is_replay for answer in journal.answers)
        assert any(answer.call.path == BATCHES and answer.is_success for answer in journal.answers)


def test_a_server_whose_postgresql_is_killed_recovers_by_itself_and_loses_nothing(
    durable: Durable, journal: Journal, rounds: int, seed: int
) -> None:
    chance = random.Random(seed)
    with explained(seed, journal), running_server(durable.url, rate_limit_per_s="0") as server:
        api_key = new_tenant(durable.url).key
        open_store(server, api_key)
        with trading(seed=seed, server=server, api_key=api_key, journal=journal):
            for number in range(max(1, rounds // 3)):
                wait_for_success(journal)
                wait_s = chance.uniform(0.2, 1.0)
                journal.note(round=number, killed_after_s=wait_s)
                time.sleep(wait_s)
                os.kill(postmaster_pid(durable.data_dir), signal.SIGKILL)
                time.sleep(chance.uniform(0.0, 0.5))
                embedded.ensure_running(durable.data_dir)
                wait_for_success(journal)
            time.sleep(0.5)
        settle(server=server, api_key=api_key, journal=journal)
        checker.check(durable.url, journal)
        seen = Counter(answer.status for answer in journal.answers)
        assert set(seen) <= {200, 201, 400, 404, 503}, seen
        assert seen[201] > 0
