"""The embedded database: one PostgreSQL per data folder, shared by every command that runs at the same time.

The postmaster is detached from the command that started it. Each command holds a shared file lock while it uses the
database, and the last one stops it. The kernel drops the locks of a process that was killed, so nothing has to be
cleaned up after `kill -9`: the next command finds the postmaster running, or recovers it.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regulars.kit import disk
from regulars.postgres import account as accounts
from regulars.postgres import cluster as clusters
from regulars.postgres import folder as folders
from regulars.postgres import wheel as wheels
from regulars.postgres.cluster import Cluster
from regulars.postgres.errors import EmbeddedDatabaseError
from regulars.postgres.folder import Folder

LOCK_SECONDS_MAX = 120

_held_locks: dict[tuple[int, Path], int] = {}
_thread_lock = threading.Lock()


def ensure_running(data_dir: Path, *, throwaway: bool = False) -> str:
    """Start the database if it is not running, register this process as its user, and return the URL.

    A throwaway database, for tests, is small and not synced to disk when it is created.
    """
    account = accounts.choose()
    folder = folders.prepare(_absolute(data_dir), account)
    with _thread_lock, _start_lock(folder):
        folders.create_subfolders(folder, account)
        cluster = _make_cluster(folder, account, throwaway=throwaway)
        if clusters.is_running(folder):
            clusters.wait_until_ready(folder)
        else:
            clusters.start(cluster)
            # Only after the start it is certain that no process runs programs of an older copy.
            wheels.remove_older_copies(wheels.locate(), folder.programs)
        _register_as_user(folder)
    return clusters.url(folder)


def postmaster(data_dir: Path) -> int | None:
    """Return the process id of the running database, or None. It reads two small files, so it may be called often."""
    return clusters.postmaster(Folder(_absolute(data_dir)))


def exists(data_dir: Path) -> bool:
    """Return whether the folder has a database; create nothing."""
    try:
        (Folder(_absolute(data_dir)).cluster / "PG_VERSION").stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise EmbeddedDatabaseError(
            f"The data folder {data_dir} cannot be used ({error.strerror}); set REGULARS_DATA_DIR to one that can."
        ) from error
    return True


def prepare_folder(data_dir: Path) -> None:
    """Create the data folder, or raise if it cannot be used; starts nothing."""
    folders.prepare(_absolute(data_dir), accounts.choose())


def release(data_dir: Path) -> None:
    """Unregister this process as a user of the database; the last user stops it."""
    folder = Folder(_absolute(data_dir))
    with _thread_lock:
        users_lock = _held_locks.pop((os.getpid(), folder.root), None)
        if users_lock is None:
            return
        with _start_lock(folder):
            try:
                # The shared lock becomes exclusive only if no other process holds it.
                if disk.try_lock(users_lock) and clusters.is_running(folder):
                    clusters.stop(_make_cluster(folder, accounts.choose()))
            finally:
                os.close(users_lock)


@contextmanager
def running(data_dir: Path) -> Iterator[str]:
    url = ensure_running(data_dir)
    try:
        yield url
    finally:
        release(data_dir)


def binaries(data_dir: Path) -> Path:
    """Return the folder with pg_dump, pg_restore, psql and pgbench of the same version as the database."""
    account = accounts.choose()
    folder = folders.prepare(_absolute(data_dir), account)
    with _thread_lock, _start_lock(folder):
        folders.create_subfolders(folder, account)
        return _make_cluster(folder, account).bin


def check_major_version(data_dir: Path) -> None:
    """Raise if the data belongs to another major version of PostgreSQL than the one of this release."""
    clusters.check_major_version(Folder(_absolute(data_dir)), wheels.locate().major)


def _absolute(data_dir: Path) -> Path:
    return data_dir.expanduser().resolve()


def _make_cluster(folder: Folder, account: accounts.Account, *, throwaway: bool = False) -> Cluster:
    """Describe the cluster. If this process runs as root, copy the programs into the data folder: they may be installed
    in a folder that only root can enter."""
    wheel = wheels.locate()
    clusters.check_major_version(folder, wheel.major)
    programs = wheel.bin
    if account.is_dedicated:
        programs = wheels.copied_bin(wheel, folder.programs)
        # The programs of a running PostgreSQL are not replaced.
        if not clusters.is_running(folder):
            wheels.copy_into(wheel, folder.programs)
    return Cluster(folder=folder, account=account, bin=programs, major=wheel.major, throwaway=throwaway)


def _register_as_user(folder: Folder) -> None:
    key = (os.getpid(), folder.root)
    if key not in _held_locks:
        descriptor = disk.open_lock_file(folder.users_lock)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        _held_locks[key] = descriptor


@contextmanager
def _start_lock(folder: Folder) -> Iterator[None]:
    try:
        descriptor = disk.open_lock_file(folder.start_lock)
    except OSError as error:
        raise EmbeddedDatabaseError(
            f"The data folder {folder.root} cannot be written ({error.strerror}); set REGULARS_DATA_DIR."
        ) from error
    try:
        if not disk.lock_within(descriptor, LOCK_SECONDS_MAX):
            raise EmbeddedDatabaseError(
                f"Another command has been starting or stopping the database in {folder.root} "
                f"for more than {LOCK_SECONDS_MAX} seconds."
            )
        yield
    finally:
        os.close(descriptor)
