"""Two generations of PostgreSQL never work on the same files, even where the one cannot see the other's processes."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psycopg
import pytest
from tests.support.embedded_command import Command, postmaster_pid
from tests.support.pid_namespace import NEW_PID_NAMESPACE, needs_pid_namespace
from tests.support.waiting import wait_until

from regulars.postgres import cluster, cluster_lock, embedded
from regulars.postgres.errors import EmbeddedDatabaseError

USE = """
import sys
from pathlib import Path
from regulars.postgres import embedded
folder = Path(sys.argv[1])
embedded.ensure_running(folder, throwaway=True)
embedded.release(folder)
"""


def is_free(lock: Path) -> bool:
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def run_elsewhere(data_dir: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*NEW_PID_NAMESPACE, sys.executable, "-c", USE, str(data_dir)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@contextlib.contextmanager
def taken(lock: Path) -> Iterator[IO[str]]:
    with lock.open("a") as file:
        wait_until(lambda: is_free(lock))
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


@needs_pid_namespace
def test_a_command_that_cannot_see_the_postmaster_leaves_its_files_alone(filled_data_dir):
    with Command(filled_data_dir) as server:
        url = server.url()
        note = (filled_data_dir / "cluster" / "postmaster.pid").read_text()
        refused = run_elsewhere(filled_data_dir)
        assert refused.returncode != 0
        assert "such as another container" in refused.stderr.strip().splitlines()[-1]
        assert (filled_data_dir / "cluster" / "postmaster.pid").read_text() == note
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT pg_postmaster_start_time() < now()").fetchone() == (True,)
        server.finish()
    assert run_elsewhere(filled_data_dir).returncode == 0


@needs_pid_namespace
def test_the_next_container_recovers_what_a_killed_one_left(filled_data_dir):
    with Command(filled_data_dir) as killed:
        with psycopg.connect(killed.url(), autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        os.kill(postmaster_pid(filled_data_dir), signal.SIGKILL)
        killed.kill()
    assert run_elsewhere(filled_data_dir).returncode == 0
    with (
        Command(filled_data_dir) as command,
        psycopg.connect(command.url()) as connection,
    ):
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_the_kernel_holds_the_lock_as_long_as_a_process_of_postgresql_lives(filled_data_dir):
    lock = filled_data_dir / "postmaster.lock"
    with Command(filled_data_dir) as command:
        command.url()
        assert not is_free(lock)
        command.kill()
        assert not is_free(lock), "the lock belongs to PostgreSQL, not to the command that started it"
    os.kill(postmaster_pid(filled_data_dir), signal.SIGKILL)
    wait_until(lambda: is_free(lock))


def test_a_start_waits_for_processes_that_outlive_their_postmaster(filled_data_dir, monkeypatch):
    with taken(filled_data_dir / "postmaster.lock") as lock:
        take, tries = cluster_lock.try_lock, []

        def end_after_the_third_try(descriptor: int) -> bool:
            tries.append(take(descriptor))
            if len(tries) == 3:
                fcntl.flock(lock, fcntl.LOCK_UN)
            return tries[-1]

        monkeypatch.setattr(cluster_lock, "try_lock", end_after_the_third_try)
        embedded.ensure_running(filled_data_dir, throwaway=True)
    assert tries == [False, False, False, True]


def test_a_lock_that_stays_taken_ends_in_one_sentence(data_dir, monkeypatch):
    monkeypatch.setattr(cluster, "START_SECONDS_MAX", 0.5)
    data_dir.mkdir(mode=0o700)
    with (
        taken(data_dir / "postmaster.lock"),
        pytest.raises(EmbeddedDatabaseError, match="such as another container") as raised,
    ):
        embedded.ensure_running(data_dir, throwaway=True)
    assert "\n" not in str(raised.value)
    assert not (data_dir / "cluster").exists()
