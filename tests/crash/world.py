"""The environment of a trial: a durable PostgreSQL on disk, a proxy to it, servers, a worker, and external services."""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from tests.crash import planted_bugs
from tests.crash.clients import Address
from tests.crash.external import ExternalServices, external_services
from tests.crash.processes import Process, ServerProcess, Traps, listening
from tests.support import claims
from tests.support.database import with_database
from tests.support.embedded_command import postmaster_pid
from tests.support.server import ROOT

from regulars.kit import migrate
from regulars.kit.shared_memory import new_block
from regulars.postgres import embedded

ON_DISK: Final = Path("/var/tmp")  # noqa: S108  # a folder with a random name is made in it
DURABLE: Final = ("fsync", "synchronous_commit", "full_page_writes")
ENDS_WITHIN_S: Final = 20.0
# Unclaimed rows with a due time, by table.
WAITS: Final = {
    "texts": "state = 'queued'",
    "webhook_deliveries": "owner IS NULL",
    "outbox_retries": "true",
    "outbox": "true",
    "attribution_customers": "true",
    "campaigns": "state IN ('preparing', 'sending')",
}


class ProxyProcess:
    """Starts `proxy.py` and sends it commands."""

    def __init__(self, socket_path: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.proxy", socket_path],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        # Also closes the pipes.
        self._process.communicate(timeout=10)


class SharedConnection:
    """One connection to the database for all threads of the harness; a lost one is replaced by the next statement."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._opened: psycopg.Connection[Any] | None = None

    def run(self, query: str, parameters: Sequence[Any]) -> "psycopg.Cursor[Any]":
        with self._lock:
            if self._opened is not None:
                with contextlib.suppress(psycopg.OperationalError):
                    return self._opened.execute(query, parameters)  # type: ignore[arg-type]  # each caller passes a literal
                self._opened.close()
            self._opened = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
            return self._opened.execute(query, parameters)  # type: ignore[arg-type]  # as above

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


@dataclass
class World:
    folder: Path
    data_dir: Path
    # Direct URL of the database, without the proxy, for the harness.
    url: str
    proxy: ProxyProcess
    external: ExternalServices
    servers: list[ServerProcess]
    worker: Process
    # Started on demand.
    analysis: Process
    address: Address
    public_url: str
    environment: dict[str, str]
    # The small disk that has the database, if any.
    disk: Path | None = None
    kills: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._connection = SharedConnection(self.url)

    def count(self, what: str) -> None:
        self.kills[what] = self.kills.get(what, 0) + 1

    def rows(self, query: str, *parameters: Any) -> list[Any]:
        return self._connection.run(query, parameters).fetchall()

    def execute(self, query: str, *parameters: Any) -> None:
        self._connection.run(query, parameters)

    def close(self) -> None:
        """Ends the processes and the connection."""
        for process in (*self.servers, self.worker, self.analysis):
            with contextlib.suppress(Exception):
                process.kill()
                process.close()
        self._connection.close()

    def kill_postmaster(self) -> None:
        os.kill(postmaster_pid(self.data_dir), signal.SIGKILL)

    def start_postgresql(self) -> None:
        embedded.ensure_running(self.data_dir)

    def start_server(self, server: ServerProcess, traps: Traps = ()) -> None:
        server.start(traps=traps)
        server.wait_until_ready()

    def start_worker(self, traps: Traps = (), **variables: str) -> None:
        """Starts the worker, and expires the claims of the previous one, which has ended."""
        self.expire_claims()
        self.worker.start(traps=traps, **variables)

    @property
    def has_analysis(self) -> bool:
        return self.analysis.was_started

    def start_analysis(self) -> None:
        if not self.analysis.is_alive():
            self.analysis.start()

    def expire_claims(self) -> None:
        with contextlib.suppress(psycopg.OperationalError):
            claims.expire_claims(self.url)

    def repair(self) -> None:
        """Repairs all faults: starts ended processes, and unblocks the proxy and the external services."""
        self.proxy.send("thaw")
        self.external.set_behaviours()
        self.start_postgresql()
        for server in self.servers:
            server.disarm()
            if not server.is_alive():
                self.start_server(server)
        self.worker.disarm()
        if not self.worker.is_alive():
            self.start_worker()
        if self.has_analysis:
            self.start_analysis()

    def pass_time(self, organization_ids: Sequence[UUID]) -> None:
        """Makes rows that wait for their due time due now."""
        self.execute(
            "UPDATE outbox SET not_before = NULL WHERE organization_id = ANY(%s) AND not_before > now()",
            list(organization_ids),
        )
        # The columns are compacted half a day after an erasure, without the erased customers.
        self.execute(
            "UPDATE segment_columns SET erased_since = now() - interval '1 day', tidy_at = now()"
            " WHERE organization_id = ANY(%s) AND erased_since > now() - interval '12 hours'",
            list(organization_ids),
        )
        for table, which in WAITS.items():
            self.execute(
                f"UPDATE {table} SET due_at = now() WHERE organization_id = ANY(%s) AND due_at > now() AND {which}",  # noqa: S608  # words above
                list(organization_ids),
            )

    def logs(self) -> dict[str, str]:
        """The log of each process since the last call."""
        found = {}
        for process in (*self.servers, self.worker, self.analysis):
            with contextlib.suppress(FileNotFoundError):
                found[process.name] = process.log.read_text(errors="replace")
                os.truncate(process.log, 0)
        return found


@dataclass(frozen=True)
class Cluster:
    """A durable PostgreSQL on disk, with a migrated database as a template."""

    data_dir: Path
    url: str

    def new_database(self) -> str:
        name = f"trial_{uuid4().hex[:8]}"
        template = urlsplit(self.url).path.removeprefix("/")
        with psycopg.connect(with_database(self.url, "postgres"), autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
            )
        return with_database(self.url, name)


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="regulars-crash-", dir=ON_DISK))
    folder.chmod(0o755)
    data_dir = folder / "data"
    try:
        url = embedded.ensure_running(data_dir)
        migrate.migrate(url)
        with psycopg.connect(url) as connection:
            for setting in DURABLE:
                assert connection.execute(f"SHOW {setting}").fetchone() == ("on",)
        yield Cluster(data_dir, url)
    finally:
        _end_at_once(data_dir)
        embedded.release(data_dir)
        shutil.rmtree(folder, ignore_errors=True)


def _end_at_once(data_dir: Path) -> None:
    """Stops a cluster without a final checkpoint, since its folder is deleted."""
    with contextlib.suppress(OSError):
        pid = postmaster_pid(data_dir)
        handle = os.pidfd_open(pid)
        os.kill(pid, signal.SIGQUIT)
        select.select([handle], [], [], ENDS_WITHIN_S)
        os.close(handle)


@dataclass(frozen=True)
class Stage:
    """The resources that several worlds use one after the other: proxy, external services, sockets."""

    place: Cluster
    proxy: ProxyProcess
    external: ExternalServices
    shared: socket.socket
    own: Sequence[socket.socket]
    # Shared memory of the server processes: the counters of the rate limit.
    block: int
    folder: Path


@contextlib.contextmanager
def stage(place: Cluster, *, servers: int) -> Iterator[Stage]:
    folder = Path(tempfile.mkdtemp(prefix="regulars-crash-stage-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        proxy = ProxyProcess(f"{parse_qs(urlsplit(place.url).query)['host'][0]}/.s.PGSQL.5432")
        stack.callback(proxy.close)
        external = stack.enter_context(external_services())
        shared, *own = (stack.enter_context(listening(2048)) for _ in range(servers + 1))
        block = new_block()
        stack.callback(os.close, block)
        yield Stage(place, proxy, external, shared, own, block, folder)


@contextlib.contextmanager
def world(place: Cluster, *, servers: int, **options: Any) -> Iterator[World]:
    with stage(place, servers=servers) as on, world_on(on, **options) as made:
        yield made


@contextlib.contextmanager
def world_on(
    on: Stage,
    *,
    planted_bug: str = "",
    url: str | None = None,
    is_measured: bool = False,
    processor: int | None = None,
    disk: Path | None = None,
    **variables: str,
) -> Iterator[World]:
    """Runs a world. In a measurement the processes connect to PostgreSQL directly, not through the proxy.

    With `processor`, all processes that start from now on, and their backends, run on it.
    """
    folder = Path(tempfile.mkdtemp(prefix="world-", dir=on.folder))
    url = url or on.place.new_database()
    if planted_bug == "unique_key_dropped":
        planted_bugs.drop_key(url)
    if processor is not None:
        os.sched_setaffinity(postmaster_pid(on.place.data_dir), {processor})
    address = on.shared.getsockname()
    public_url = f"http://127.0.0.1:{address[1]}"
    environment = {
        **_environment(url, on, public_url, planted_bug),
        **({"DATABASE_URL": url} if is_measured else {}),
        **variables,
    }
    made = World(
        folder,
        on.place.data_dir,
        url,
        on.proxy,
        on.external,
        [
            ServerProcess(f"server-{number}", folder, environment, block=on.block, shared=on.shared, own=mine)
            for number, mine in enumerate(on.own)
        ],
        Process("worker", folder, ["worker"], environment),
        Process("analysis", folder, ["analysis"], environment),
        Address(address),
        public_url,
        environment,
        disk,
    )
    try:
        for server in made.servers:
            server.start()
        made.worker.start()
        for process in (*made.servers, made.worker):
            if processor is not None:
                os.sched_setaffinity(process.pid, {processor})
        for server in made.servers:
            server.wait_until_ready()
        yield made
    finally:
        made.close()


def _environment(url: str, on: Stage, public_url: str, bug: str) -> dict[str, str]:
    parts = urlsplit(url)
    environment = {
        "DATABASE_URL": f"postgresql://{parts.username}@127.0.0.1:{on.proxy.port}{parts.path}",
        "REGULARS_PUBLIC_URL": public_url,
        "REGULARS_TWILIO_URL": on.external.provider_url,
        "REGULARS_WEBHOOK_ALLOW": "127.0.0.0/8",
        "REGULARS_RATE_LIMIT_PER_S": "0",
        "REGULARS_LOG_LEVEL": "warning",
    }
    if bug:
        environment["REGULARS_TEST_CRASH_FALLBACK"] = "1"
    if bug in planted_bugs.BUGS:
        environment["REGULARS_TEST_CRASH_PLANTED"] = bug
    return environment


def wait_until(holds: Any, *, seconds: float, what: str, every_s: float = 0.05) -> float:
    """Waits for the condition; returns the seconds. A timeout is a violation."""
    started = time.monotonic()
    while not holds():
        assert time.monotonic() - started < seconds, f"STUCK: {what} within {seconds:.0f} s"
        time.sleep(every_s)
    return time.monotonic() - started
