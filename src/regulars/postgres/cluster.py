"""Create, start and stop the embedded PostgreSQL of a data folder; every caller holds the start lock of the folder."""

import os
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from regulars.kit import disk, log
from regulars.postgres import account as accounts
from regulars.postgres import cluster_lock, configuration, start_log
from regulars.postgres.account import Account
from regulars.postgres.errors import EmbeddedDatabaseError
from regulars.postgres.folder import SOCKET_NAME, Folder

START_SECONDS_MAX = 90
STOP_SECONDS_MAX = 90
CONNECT_SECONDS_MAX = 5
POLL_SECONDS = 0.05
# Linux lists processes here; on other systems `ps` is run.
PROC_FOLDER = Path("/proc")
# No process can have this id, so PostgreSQL treats the pid file as stale.
UNUSED_PID = "2147483647"
SUPERUSER = "regulars"
DATABASE = "regulars"

_log = log.get(__name__)


@dataclass(frozen=True)
class Cluster:
    folder: Folder
    account: Account
    bin: Path
    major: int
    # For tests: with small settings, and not synced to disk when it is created.
    throwaway: bool = False


def url(folder: Folder, database: str = DATABASE) -> str:
    return f"postgresql://{SUPERUSER}@/{database}?host={quote(str(folder.socket), safe='')}"


def check_major_version(folder: Folder, major: int) -> None:
    try:
        made_by = (folder.cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return
    if made_by != str(major):
        raise EmbeddedDatabaseError(
            f"The data folder {folder.root} was made by PostgreSQL {made_by} and this release runs PostgreSQL {major}: "
            "write a file with `regulars backup FILE` of the older release, set this folder aside, "
            "and read the file with `regulars restore FILE` of this release."
        )


def is_running(folder: Folder) -> bool:
    return postmaster(folder) is not None


def postmaster(folder: Folder) -> int | None:
    """Return the process id in postmaster.pid, if it is this cluster's postmaster and not a later process with the same
    id: in a container, process ids are reused within seconds after a crash."""
    pid = _read_pid(folder)
    return pid if pid is not None and str(folder.cluster) in _command_line(pid) else None


def start(cluster: Cluster) -> None:
    folder = cluster.folder
    with cluster_lock.hold_cluster_lock(folder, seconds_max=START_SECONDS_MAX) as lock_descriptor:
        if not folder.cluster.exists():
            _create(cluster)
        check_major_version(folder, cluster.major)
        configuration.write(folder, cluster.account, superuser=SUPERUSER, throwaway=cluster.throwaway)
        _invalidate_stale_pid_file(folder)
        _launch(cluster, lock_descriptor)
    _create_database(folder)


def wait_until_ready(folder: Folder) -> None:
    """Wait until connections are accepted: a postmaster that another command started may still be replaying its log."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            psycopg.connect(url(folder), connect_timeout=CONNECT_SECONDS_MAX).close()
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline or not is_running(folder):
                reason = " ".join(str(error).split())
                raise EmbeddedDatabaseError(
                    f"The embedded PostgreSQL in {folder.root} does not answer: {reason}"
                ) from error
            time.sleep(POLL_SECONDS)
        else:
            return


def stop(cluster: Cluster) -> None:
    """End the sessions and stop PostgreSQL. Committed data is on disk already."""
    command: list[str | Path] = [
        cluster.bin / "pg_ctl",
        "stop",
        "--mode=fast",
        f"--timeout={STOP_SECONDS_MAX}",
        "--silent",
        f"--pgdata={cluster.folder.cluster}",
    ]
    accounts.run(cluster.account, command, folder=cluster.folder.settings)


def _create(cluster: Cluster) -> None:
    """Create the cluster under a temporary name first, so that a killed initdb leaves no partial cluster."""
    folder = cluster.folder
    shutil.rmtree(folder.unfinished_cluster, ignore_errors=True)
    folder.unfinished_cluster.mkdir(mode=0o700)
    if cluster.account.is_dedicated:
        shutil.chown(folder.unfinished_cluster, cluster.account.uid, cluster.account.gid)
    command: list[str | Path] = [
        cluster.bin / "initdb",
        f"--pgdata={folder.unfinished_cluster}",
        f"--username={SUPERUSER}",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--auth=reject",
        "--no-instructions",
    ]
    if cluster.throwaway:
        command.append("--no-sync")
    result = accounts.run(cluster.account, command, folder=folder.settings)
    if result.returncode != 0:
        reason = result.stderr.strip().rpartition("\n")[2]
        raise EmbeddedDatabaseError(f"The data folder {folder.root} could not be filled by initdb: {reason}")
    folder.unfinished_cluster.rename(folder.cluster)
    # initdb has synced the files inside; the directory entry of the cluster itself is synced here.
    if not cluster.throwaway:
        disk.sync(folder.root)


def _launch(cluster: Cluster, lock_descriptor: int) -> None:
    folder = cluster.folder
    start_log.delete(folder)
    deadline = time.monotonic() + START_SECONDS_MAX
    while _run_start_command(cluster, lock_descriptor).returncode != 0:
        reason = start_log.find_reason(folder)
        # Child processes of a killed postmaster may still finish a statement, and a second PostgreSQL on the same files
        # would destroy them. PostgreSQL refuses to start then, so retry until they have ended.
        if "pre-existing shared memory block" not in reason or time.monotonic() > deadline:
            raise EmbeddedDatabaseError(f"The embedded PostgreSQL in {folder.root} did not start: {reason}")
        time.sleep(10 * POLL_SECONDS)
        start_log.delete(folder)


def _run_start_command(cluster: Cluster, lock_descriptor: int) -> subprocess.CompletedProcess[str]:
    folder = cluster.folder
    options = f"-c config_file={shlex.quote(str(folder.settings / configuration.MAIN_FILE))}"
    command: list[str | Path] = [
        cluster.bin / "pg_ctl",
        "start",
        "--wait",
        f"--timeout={START_SECONDS_MAX}",
        "--silent",
        f"--pgdata={folder.cluster}",
        f"--log={start_log.path(folder)}",
        f"--options={options}",
    ]
    return accounts.run(cluster.account, command, folder=folder.settings, descriptors=[lock_descriptor])


def _create_database(folder: Folder) -> None:
    with psycopg.connect(url(folder, "postgres"), autocommit=True, connect_timeout=CONNECT_SECONDS_MAX) as connection:
        row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
        if row is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _read_pid(folder: Folder) -> int | None:
    try:
        return int(_pid_file(folder).read_text().partition("\n")[0])
    except (FileNotFoundError, ValueError):
        return None


def _pid_file(folder: Folder) -> Path:
    return folder.cluster / "postmaster.pid"


def _command_line(pid: int) -> str:
    if PROC_FOLDER.is_dir():
        try:
            return (PROC_FOLDER / str(pid) / "cmdline").read_text(errors="surrogateescape")
        except OSError:
            return ""
    listed = subprocess.run(["/bin/ps", "-o", "command=", "-p", str(pid)], check=False, capture_output=True, text=True)  # noqa: S603  # fixed words and a number
    return listed.stdout


def _invalidate_stale_pid_file(folder: Folder) -> None:
    """Make PostgreSQL treat a stale postmaster.pid as stale although its process id is in use: by another process, or
    by the dead postmaster, which stays a zombie if the first process of a container does not reap its children.

    The file stays: its seventh line names the shared memory by which PostgreSQL finds out whether processes of the
    killed postmaster still use the data files.
    """
    # The lock file of the socket names no shared memory, and no other process uses the socket's folder: it is deleted.
    (folder.socket / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)
    if _read_pid(folder) is None:
        _remove_unreadable_pid_file(folder)
        return
    # The folder belongs to the database's account: a symbolic link in it must not redirect a write by root.
    descriptor = os.open(_pid_file(folder), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "r+") as file:
        _, _, other_lines = file.read().partition("\n")
        file.seek(0)
        file.write(f"{UNUSED_PID}\n{other_lines}")
        file.truncate()


def _remove_unreadable_pid_file(folder: Folder) -> None:
    """Remove a pid file that a power cut left empty or full of zeros, because PostgreSQL would refuse to start.

    No process of the old PostgreSQL runs any more: the caller holds the lock that all of them inherit.
    """
    try:
        _pid_file(folder).unlink()
    except FileNotFoundError:
        return
    _log.warning(
        "postmaster.note_unreadable",
        file=str(_pid_file(folder)),
        reason="It was empty or garbled, as a power cut may leave it; it was removed, and PostgreSQL recovers.",
    )
