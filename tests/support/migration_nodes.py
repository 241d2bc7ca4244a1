"""Migrates one database from three nodes at once, while an open transaction delays the first concurrent index.

Run as `bin/nodes`. Each round has an empty and an older database on every installed PostgreSQL and the embedded one,
and a data folder on which `serve` starts beside two `migrate`. Every node must exit with 0.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGINT, SIGTERM

import psycopg
from tests.support.database import is_reachable, new_data_folder, new_database, throwaway_server
from tests.support.fork_server import Child, fork_server
from tests.support.waiting import wait_until

from regulars.kit import migrate
from regulars.postgres import account, embedded

NODES = 3
# The last migration of the older databases; seven files with concurrent indexes come after it.
UPGRADED_FROM = "0026"
SECONDS_MAX = 180
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


@contextmanager
def installed_server(program: Path) -> Iterator[str]:
    """Runs an installed PostgreSQL with a new cluster in memory."""
    folder, owner = new_data_folder().parent, account.choose()
    os.chown(folder, owner.uid, owner.gid)
    initdb = [program.with_name("initdb"), f"--pgdata={folder / 'cluster'}", "--username=regulars", "--auth=trust"]
    made = account.run(owner, [*initdb, "--encoding=UTF8", "--no-sync"], folder=folder)
    assert made.returncode == 0, made.stderr
    running = subprocess.Popen(
        [program, "-D", folder / "cluster", "-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"],
        user=owner.uid if owner.is_dedicated else None,
        group=owner.gid if owner.is_dedicated else None,
        extra_groups=[] if owner.is_dedicated else None,
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )
    url = f"postgresql://regulars@/postgres?host={folder}"
    try:
        wait_until(lambda: is_reachable(url))
        yield url
    finally:
        # PostgreSQL waits on SIGTERM until its clients have gone; `new_database` keeps a connection open.
        running.send_signal(SIGINT)
        running.wait(SECONDS_MAX)
        shutil.rmtree(folder)


class Case:
    """One database and the nodes that start on it."""

    def __init__(self, name: str, url: str, folder: Path, *, serves: bool = False) -> None:
        self.name, self.url, self._folder, self._serves = name, url, folder, serves
        folder.mkdir(exist_ok=True)
        self._reader = psycopg.connect(url)
        self._nodes: list[tuple[Child, Path]] = []

    def start(self) -> None:
        self._reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._reader.execute("SELECT 1")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
        environment.pop("DATABASE_URL", None)
        if self._serves:
            environment["REGULARS_DATA_DIR"] = str(self._folder / "data")
        else:
            environment["DATABASE_URL"] = self.url
        for number in range(NODES):
            command = ["serve", "--port", "0"] if self._serves and number == 0 else ["migrate"]
            log = self._folder / f"{number}.log"
            node = fork_server().start(
                "tests.support.cli", *command, environment=environment, log=log, folder=self._folder
            )
            self._nodes.append((node, log))

    def end_reader(self) -> None:
        waiting = [node.is_alive() for node, _log in self._nodes]
        assert all(waiting), f"{self.name}: a node ended before the reader did: {self._logs()}"
        self._reader.close()

    def finish(self) -> None:
        """Asserts that every node exited with 0, no migration is pending, and every index is valid."""
        if self._serves:
            server, log = self._nodes[0]
            wait_until(
                lambda: "server.started" in log.read_text() or not server.is_alive(),
                seconds=SECONDS_MAX,
                show=self._logs,
            )
            server.send_signal(SIGTERM)
        codes = [node.wait(SECONDS_MAX) for node, _log in self._nodes]
        assert codes == [0] * NODES, f"{self.name}: {codes}: {self._logs()}"
        assert migrate.pending(self.url) == []
        with psycopg.connect(self.url) as connection:
            broken = connection.execute("SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid").fetchall()
        assert broken == [], f"{self.name}: {broken}"

    def _logs(self) -> str:
        return " | ".join(log.read_text().strip() for _node, log in self._nodes)


def migrate_partly(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for file in migrate.MIGRATIONS.glob("[0-9]*.sql"):
            if file.name[:4] <= UPGRADED_FROM:
                shutil.copy(file, folder)
        migrate.migrate(url, folder=Path(folder))


def run_round(servers: dict[str, str], *, reader_s: float) -> None:
    with ExitStack() as stack:
        cases = []
        for server, url in servers.items():
            for state in ("empty", "upgraded"):
                name = f"{server} {state}"
                database = stack.enter_context(new_database(url))
                if state == "upgraded":
                    migrate_partly(database)
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                cases.append(Case(name, database, folder))
        data_dir = new_data_folder()
        stack.callback(shutil.rmtree, data_dir.parent)
        cases.append(Case("serve beside migrate", embedded.ensure_running(data_dir), data_dir.parent, serves=True))
        stack.callback(embedded.release, data_dir)
        for case in cases:
            case.start()
        time.sleep(reader_s)
        for case in cases:
            case.end_reader()
        for case in cases:
            case.finish()


def main() -> None:
    parser = argparse.ArgumentParser(prog="bin/nodes", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=10, help="how often (10)")
    parser.add_argument("--reader-s", type=float, default=20.0, help="how long the reader delays the index (20)")
    given = parser.parse_args()
    with ExitStack() as stack:
        servers = {"embedded": stack.enter_context(throwaway_server(new_data_folder()))}
        for program in PROGRAMS:
            servers[f"PostgreSQL {program.parts[-3]}"] = stack.enter_context(installed_server(program))
        for number in range(1, given.rounds + 1):
            started = time.monotonic()
            run_round(servers, reader_s=given.reader_s)
            took = time.monotonic() - started
            sys.stdout.write(
                f"round {number}: {2 * len(servers) + 1} databases, all nodes ended with 0, {took:.0f} s\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
