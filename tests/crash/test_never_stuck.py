"""Tests that every caller gets a response, and every process can stop, when PostgreSQL dies in the middle of a message."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.cli.test_serve import Serving, serving
from tests.crash.conftest import Durable
from tests.support import samples
from tests.support.client import post_url
from tests.support.embedded_command import postmaster_pid
from tests.support.tenant import new_tenant
from tests.support.waiting import wait_until, wait_until_gone

TILLS = 8
# A stuck caller would wait forever.
ANSWER_SECONDS_MAX = 60
# Less than half of the server's default timeouts; it reports that it is stuck after the last of these.
SOONER = {
    "regulars.http.in_flight.REQUEST_S": 4.0,
    "regulars.server.REQUEST_MS": 4000,
    "regulars.http.in_flight.WAIT_FOR_SAME_KEY_S": 3.5,
    "regulars.http.probes.STUCK_AFTER_S": 2.0,
}
# The last statement of a connection that records sales: the sale, or its fact.
RECORDING = """
SELECT pid FROM pg_stat_activity
WHERE query ~ 'INSERT INTO (sales_events|outbox)' AND datname = current_database() AND pid <> pg_backend_pid()
"""


class Tills:
    """Callers that open a connection per sale, so that all server processes get some."""

    def __init__(self, server: Serving, url: str) -> None:
        self._call = partial(_post, server.url, {"x-api-key": new_tenant(url).key})
        assert self._call("/v1/stores", samples.store(external_id="S1")) == 201

    def sell(self) -> list[int | None]:
        """Sends one sale per till at once; returns the statuses, or None without a response in time."""
        with ThreadPoolExecutor(TILLS) as tills:
            return list(tills.map(lambda _: self._call("/v1/sales-events", _ticket()), range(TILLS)))

    @contextmanager
    def selling(self) -> Iterator[list[int | None]]:
        """Sends the sales while the block runs."""
        answers: list[int | None] = []
        thread = threading.Thread(target=lambda: answers.extend(self.sell()), daemon=True)
        thread.start()
        yield answers
        thread.join(ANSWER_SECONDS_MAX + 5)


def _post(url: str, headers: dict[str, str], path: str, body: dict[str, object]) -> int | None:
    try:
        return post_url(url + path, json=body, headers=headers, timeout=ANSWER_SECONDS_MAX).status_code
    except httpx.TransportError:
        return None


@pytest.mark.parametrize("processes", [1, 2])
def test_a_backend_that_dies_with_our_statement_unread_leaves_no_caller_waiting(
    durable: Durable, processes: int
) -> None:
    folder = Path(durable.data_dir.parent / "serve")
    with serving(folder, "--no-worker", "--workers", str(processes), DATABASE_URL=durable.url) as server:
        tills = Tills(server, durable.url)
        recording = _recording_backends(tills, durable.url, at_least=processes)
        for backend in recording:
            os.kill(backend, signal.SIGSTOP)
        with tills.selling() as answers:
            time.sleep(1)
            # A stopped server gets the last message of a backend and the end of its connection together.
            with _stopped(*_server_processes(server)):
                _kill_another_backend(durable.url)
                time.sleep(0.2)
                for backend in recording:
                    os.kill(backend, signal.SIGCONT)
                wait_until_gone(*recording)
        _assert_that_all_were_answered(answers)
        wait_until(lambda: tills.sell() == [201] * TILLS)
        wait_until(lambda: server.get("/readyz").status_code == 200)
        assert server.stop() == 0


def test_a_backend_that_never_answers_leaves_no_caller_waiting_and_the_server_reports_that_it_is_stuck(
    durable: Durable,
) -> None:
    folder = Path(durable.data_dir.parent / "serve")
    with serving(folder, "--no-worker", constants=SOONER, DATABASE_URL=durable.url) as server:
        tills = Tills(server, durable.url)
        with _stopped(*_recording_backends(tills, durable.url, at_least=1)):
            with tills.selling() as answers:
                wait_until(lambda: "waiting for the database" in server.get("/readyz").text)
            _assert_that_all_were_answered(answers)
            assert tills.sell() == [201] * TILLS
            with _stopped(*_recording_backends(tills, durable.url, at_least=1)), tills.selling():
                time.sleep(0.5)
                # The backends stay stopped until then.
                assert server.stop() == 0


def test_a_read_that_is_not_answered_is_refused_while_the_database_still_stands(durable: Durable) -> None:
    folder = Path(durable.data_dir.parent / "serve")
    with serving(folder, "--no-worker", constants=SOONER, DATABASE_URL=durable.url) as server:
        key = {"x-api-key": new_tenant(durable.url).key}
        assert server.get("/v1/stores", headers=key).status_code == 200
        with _stopped(postmaster_pid(durable.data_dir), *_backends_of_the_server(durable.url)):
            assert server.get("/v1/stores", headers=key).status_code == 503
        wait_until(lambda: server.get("/v1/stores", headers=key).status_code == 200)


def _backends_of_the_server(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'regulars'")
        return [row[0] for row in rows]


def _recording_backends(tills: Tills, url: str, *, at_least: int) -> list[int]:
    """The backends of the connections that record sales, once every server process has one."""

    def record() -> list[int] | None:
        assert tills.sell() == [201] * TILLS
        with psycopg.connect(url) as connection:
            found = [row[0] for row in connection.execute(RECORDING)]
        return found if len(found) >= at_least else None

    return wait_until(record)


def _server_processes(server: Serving) -> list[int]:
    children = [pid for pid, arguments in server.children().items() if "serve-process" in arguments]
    return children or [server.process.pid]


@contextmanager
def _stopped(*processes: int) -> Iterator[None]:
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def _kill_another_backend(url: str) -> None:
    connection = psycopg.connect(url)
    os.kill(connection.info.backend_pid, signal.SIGKILL)
    connection.close()


def _assert_that_all_were_answered(answers: Sequence[int | None]) -> None:
    """Asserts that callers of a lost statement were refused; those queued behind it may succeed if the database is back."""
    assert len(answers) == TILLS
    assert 503 in answers
    assert set(answers) <= {201, 503}


def _ticket() -> dict[str, object]:
    """A sale for the fast path: without a new property key, which only the worker registers."""
    line = samples.line()
    line["product"] = samples.without(line["product"], "properties")
    return samples.sale("S1", line_items=[line])
