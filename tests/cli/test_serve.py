import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from tests.accounts.browser import Browser
from tests.cli.conftest import Ran, environment, new_data_dir
from tests.support.client import get_url, post_url
from tests.support.embedded_command import postmaster_pid
from tests.support.fork_server import Child, fork_server
from tests.support.pid_namespace import NEW_PID_NAMESPACE, needs_pid_namespace
from tests.support.waiting import wait_until, wait_until_gone, wait_until_logged

from regulars.kit.releases import MIGRATIONS
from regulars.postgres import embedded

READY_SECONDS_MAX = 150
END_SECONDS_MAX = 150


class Typed(subprocess.Popen[bytes]):
    """The command as a user types it, with an interpreter of its own."""

    def is_alive(self) -> bool:
        return self.poll() is None


class Serving:
    """`regulars serve` as a process of its own."""

    def __init__(
        self,
        data_dir: Path,
        *arguments: str,
        typed: bool = False,
        constants: dict[str, Any] | None = None,
        **variables: str,
    ) -> None:
        self.data_dir = data_dir
        self.log_file = data_dir.parent / f"serve-{time.monotonic_ns()}.log"
        command = ["serve", "--port", "0", *arguments]
        # A child that is stopped while it still starts leaves its open files and programs to the interpreter's end.
        warnings = "error,ignore::ResourceWarning"
        given = environment(REGULARS_DATA_DIR=str(data_dir), PYTHONWARNINGS=warnings, **variables)
        self.process: Typed | Child
        if typed:
            with self.log_file.open("wb") as log:
                interpreted = [sys.executable, "-m", "regulars.cli", *command]
                self.process = Typed(interpreted, env=given, cwd=data_dir.parent, stdout=log, stderr=log)
        else:
            self.process = fork_server().start(
                "tests.support.cli",
                *command,
                environment=given,
                log=self.log_file,
                folder=data_dir.parent,
                constants=constants,
            )
        self.url = self._address()

    def log(self) -> str:
        return self.log_file.read_text()

    def _address(self) -> str:
        def find_address() -> re.Match[str] | None:
            assert self.process.is_alive(), f"The server did not start:\n{self.log()}"
            return re.search(r'"url": "([^"]+)".*"event": "server.started"', self.log())

        return wait_until(find_address, show=self.log)[1]

    def get(self, path: str, **options) -> httpx.Response:
        return get_url(self.url + path, timeout=READY_SECONDS_MAX, **options)

    def children(self) -> dict[int, str]:
        """The live child processes by id, with their arguments."""
        listed = subprocess.run(
            ["ps", "--ppid", str(self.process.pid), "-o", "pid=,args="], capture_output=True, text=True, check=False
        )
        return {int(line.split(None, 1)[0]): line.split(None, 1)[1] for line in listed.stdout.splitlines()}

    def child(self, name: str) -> int:
        """The process id of the child with this command, once it runs."""

        def find_child() -> int | None:
            named = (pid for pid, arguments in self.children().items() if f"regulars.cli {name} " in arguments)
            return next(named, None)

        return wait_until(find_child, every_s=0.05, show=lambda: f"There is no child {name}:\n{self.log()}")

    def stop(self) -> int | None:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(END_SECONDS_MAX)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


@contextlib.contextmanager
def serving(data_dir: Path, *arguments: str, **options: Any) -> Iterator[Serving]:
    server = Serving(data_dir, *arguments, **options)
    try:
        yield server
    finally:
        if server.process.is_alive():
            server.stop()
    assert "Traceback" not in server.log(), server.log()


def make_key(command, data_dir: Path) -> str:
    command("organization", "create", "Shop", REGULARS_DATA_DIR=str(data_dir))
    return command("key", "create", "--organization", "Shop", REGULARS_DATA_DIR=str(data_dir)).out.strip()


def put_store(server: Serving, key: str, name: str) -> httpx.Response:
    headers, body = {"x-api-key": key}, {"external_id": name}
    return post_url(f"{server.url}/v1/stores", json=body, headers=headers, timeout=20)


def find_link(server: Serving) -> str:
    """The link of the file that the log names; only its owner may read the file."""
    wait_until_logged(server.log_file, "server.has_no_user")
    path = server.data_dir / "owner-link.txt"
    assert str(path) in server.log()
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_text().strip().rpartition("/link/")[2]


def become_owner(server: Serving, link: str) -> None:
    fields = {"organization": "Maison", "name": "Claire", "email": "claire@shop.example", "country": "FR"}
    passwords = dict.fromkeys(("password", "repeated"), "four words in a row")
    page = f"/link/{link}"
    assert Browser(server.url).fill(page, page, **fields, **passwords).status_code == 303


def until_answered(server: Serving, ask: Callable[[], httpx.Response]) -> httpx.Response:
    """The first response that is not a 503, which tells the caller to retry."""

    def find_answer() -> httpx.Response | None:
        response = ask()
        return None if response.status_code == 503 else response

    response = wait_until(find_answer, seconds=READY_SECONDS_MAX, every_s=0.1, show=server.log)
    assert response.status_code in {200, 201}, response.text
    return response


@pytest.fixture(scope="module")
def one_process(migrated_template: Path) -> Iterator[Serving]:
    with new_data_dir(copied_from=migrated_template) as folder, serving(folder, "--no-worker") as server:
        yield server
        assert server.children() == {}
        assert server.stop() == 0


@pytest.fixture(scope="module")
def two_processes(migrated_template: Path) -> Iterator[Serving]:
    """A key may send 40 requests, and one more each second."""
    limits = {"REGULARS_RATE_LIMIT_PER_S": "1", "REGULARS_RATE_LIMIT_BURST": "40"}
    with (
        new_data_dir(copied_from=migrated_template) as folder,
        serving(folder, "--workers", "2", "--no-worker", **limits) as server,
    ):
        yield server
        children = list(server.children())
        assert server.stop() == 0
        wait_until_gone(*children)


def test_one_command_serves_everything_and_stops_cleanly(command, data_dir):
    # Processes with nothing to finish need no grace period: this one is longer than the test waits.
    with serving(data_dir, typed=True, REGULARS_SHUTDOWN_GRACE_S=str(END_SECONDS_MAX * 2)) as server:
        assert server.get("/readyz").status_code == 200
        worker = server.child("worker")
        link = find_link(server)
        assert "Set up Regulars" in server.get(f"/link/{link}").text
        become_owner(server, link)
        wait_until(lambda: not (data_dir / "owner-link.txt").exists(), show=server.log)
        assert (data_dir / "secret.key").stat().st_mode & 0o777 == 0o600
        key = make_key(command, data_dir)
        assert put_store(server, key, "S1").status_code == 201, "the server still runs after another command"
        assert "regulars_requests_total" in server.get("/metrics").text
        assert server.stop() == 0
        wait_until_gone(worker)
        assert link not in server.log()
        events = [json.loads(line) for line in server.log().splitlines()]
        # The line that names the file comes after those of the start.
        named = [event["event"] for event in events]
        assert max(named.index("server.started"), named.index("worker.started")) < named.index("server.has_no_user")
        [migrated] = [event for event in events if event["event"] == "database.migrated"]
        assert migrated["migrations"] == len(list(MIGRATIONS.glob("0*.sql")))


def test_on_a_terminal_a_start_ends_with_the_address_and_the_link(migrated_data_dir):
    terminal, theirs = os.openpty()
    given = environment(REGULARS_DATA_DIR=str(migrated_data_dir))
    command = [sys.executable, "-m", "regulars.cli", "serve", "--port", "0"]
    server = subprocess.Popen(command, env=given, cwd=migrated_data_dir.parent, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = ""
    try:
        while "/link/" not in shown or not shown.endswith("\n"):
            assert select.select([terminal], [], [], READY_SECONDS_MAX)[0], shown
            shown += os.read(terminal, 1 << 16).decode()
    finally:
        server.terminate()
        assert server.wait(END_SECONDS_MAX) == 0
        os.close(terminal)
    lines = shown.splitlines()
    assert any(line.endswith(f"Starting the database in {migrated_data_dir}.") for line in lines)
    address = lines[-2].removeprefix("Regulars serves on ")
    assert re.search(rf"works once, for 24 hours\): {re.escape(address)}/link/\S+$", lines[-1]), shown
    assert not (migrated_data_dir / "owner-link.txt").exists()


def test_commands_print_the_address_at_which_the_server_runs(command, one_process):
    folder = {"REGULARS_DATA_DIR": str(one_process.data_dir)}
    command("organization", "create", "Addressed", **folder)
    invite = ("user", "create", f"{uuid4().hex}@shop.example", "--organization", "Addressed")
    assert command(*invite, **folder).out.startswith(f"{one_process.url}/link/")
    public = {"REGULARS_PUBLIC_URL": "https://regulars.example.com"}
    assert command(*invite, **folder, **public).out.startswith("https://regulars.example.com/link/")


def test_a_second_server_on_the_folder_says_what_is_wrong(command, one_process):
    sentence = command("serve", "--port", "0", REGULARS_DATA_DIR=str(one_process.data_dir)).complains(code=1)
    assert "Another `regulars serve` already runs on the data folder" in sentence
    assert one_process.get("/readyz").status_code == 200


def test_tables_that_begin_to_fill_get_their_statistics_also_without_a_worker(one_process):
    with embedded.running(one_process.data_dir) as url, psycopg.connect(url, autocommit=True) as connection:
        # Without this, autovacuum sometimes analyzes the table first, and the server then has nothing to do.
        connection.execute(
            "CREATE TABLE things WITH (autovacuum_enabled = false)"
            " AS SELECT repeat('x', 100) FROM generate_series(1, 2000)"
        )
        looked = "SELECT analyze_count > 0 FROM pg_stat_user_tables WHERE relname = 'things'"
        wait_until(lambda: connection.execute(looked).fetchone() == (True,), show=one_process.log)


def test_a_port_that_is_taken_says_so_before_a_database_is_made(command, one_process, tmp_path):
    port = one_process.url.rsplit(":", 1)[1]
    sentence = command("serve", "--port", port).complains(code=1)
    assert f"Port {port} on 127.0.0.1 is already in use" in sentence
    assert not embedded.exists(tmp_path / "data")


def test_after_a_kill_it_comes_up_with_the_data_and_leaves_no_orphan(command, migrated_data_dir):
    with serving(migrated_data_dir) as server:
        key, link = make_key(command, migrated_data_dir), find_link(server)
        assert put_store(server, key, "S1").status_code == 201
        first = server.child("worker")
        os.kill(first, signal.SIGKILL)
        wait_until_gone(first)
        # A worker that dies is started again.
        worker = server.child("worker")
        server.kill()
        with serving(migrated_data_dir, "--no-worker") as again:
            listed = again.get("/v1/stores", headers={"x-api-key": key})
            assert [store["external_id"] for store in listed.json()["data"]] == ["S1"]
            wait_until_gone(worker)
            # The first owner gets a new link, and the old one ends.
            assert find_link(again) != link
            assert again.get(f"/link/{link}").status_code == 410


@pytest.mark.parametrize("server", ["one_process", "two_processes"])
def test_a_postgresql_that_is_killed_beneath_the_server_comes_back_by_itself(request, command, server):
    server = request.getfixturevalue(server)
    key = make_key(command, server.data_dir)
    assert until_answered(server, lambda: put_store(server, key, "S1")).status_code == 201
    killed = postmaster_pid(server.data_dir)
    os.kill(killed, signal.SIGKILL)
    # A caller gets 503 as long as it takes, and nothing worse. A process that tried to connect meanwhile may be ready
    # a little later than its neighbour; by then the store is there: 200.
    until_answered(server, lambda: put_store(server, key, "S2"))
    # Its sessions notice its death a little later, and answer until then.
    wait_until(lambda: embedded.postmaster(server.data_dir) not in {None, killed})
    until_answered(server, lambda: server.get("/readyz"))
    listed = until_answered(server, lambda: server.get("/v1/stores", headers={"x-api-key": key}))
    assert sorted(store["external_id"] for store in listed.json()["data"]) == ["S1", "S2"]
    # A process that connected may have restarted it before the watch looked again, which then still says so.
    wait_until_logged(server.log_file, "database.restarted")


@needs_pid_namespace
def test_a_second_server_in_another_container_is_refused_before_it_looks_at_the_database(one_process):
    refused = subprocess.run(
        [*NEW_PID_NAMESPACE, sys.executable, "-m", "regulars.cli", "serve", "--port", "0"],
        env=environment(REGULARS_DATA_DIR=str(one_process.data_dir)),
        cwd=one_process.data_dir.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    sentence = Ran(refused.returncode, refused.stdout, refused.stderr).complains(code=1)
    assert "Another `regulars serve` already runs on the data folder" in sentence
    assert one_process.get("/readyz").status_code == 200


def test_several_processes_share_the_port_their_figures_and_the_count_of_a_key(command, two_processes):
    server, key = two_processes, {"x-api-key": make_key(command, two_processes.data_dir)}
    until_answered(server, lambda: server.get("/readyz"))

    def find_both() -> bool:
        server.get("/v1/stores")
        return set(re.findall(r'regulars_requests_total\{.*worker="(\d)"', server.get("/metrics").text)) == {"0", "1"}

    wait_until(find_both, seconds=READY_SECONDS_MAX)
    started = time.monotonic()
    with httpx.Client(base_url=server.url, headers=key, timeout=20, trust_env=False) as client:
        # One connection is one process, and may use all of what the key has.
        answers = [client.get("/v1/stores") for _ in range(40)]
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["ratelimit-limit"] for answer in answers} == {"40"}
    remaining = [int(answer.headers["ratelimit-remaining"]) for answer in answers]
    assert (remaining[0], max(remaining)) == (39, 39)
    victim = server.child("serve-process")
    os.kill(victim, signal.SIGKILL)
    # New connections reach either process, and neither has more for this key than flows in.
    taken = 0
    for _ in range(40):
        with contextlib.suppress(httpx.TransportError):
            taken += server.get("/v1/stores", headers=key).status_code == 200
            assert server.get("/readyz").status_code == 200
    assert taken <= time.monotonic() - started + 1
    wait_until_gone(victim)


def test_an_external_database_must_be_durable(command, database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = psycopg.sql.Identifier(connection.info.dbname)
        connection.execute(psycopg.sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name))
    sentence = command("serve", "--port", "0", DATABASE_URL=database_url).complains(code=3)
    assert "may lose acknowledged writes" in sentence


def test_an_external_database_is_not_migrated_unasked(command, empty_database_url):
    sentence = command("serve", "--port", "0", DATABASE_URL=empty_database_url).complains(code=3)
    assert "regulars migrate" in sentence
    sentence = command("worker", DATABASE_URL=empty_database_url).complains(code=3)
    assert "regulars migrate" in sentence


@pytest.mark.parametrize("arguments", [("--port", "70000"), ("--workers", "0"), ("--prot", "1")])
def test_bad_options_are_usage_errors(command, arguments):
    assert command("serve", *arguments).code == 2


def test_a_host_that_is_no_address_is_one_sentence(regulars):
    regulars("serve", "--host", "no.such.host.invalid").complains(code=1)
