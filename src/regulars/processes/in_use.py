"""Register the processes that use the database: servers and workers share a lock that a restore needs exclusively.

The lock is in PostgreSQL, because the nodes of an external database share nothing else. It protects against a mistake
of the operator, so a server continues without it: a lost connection is opened again in the background.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import psycopg

from regulars.kit import db_session, log
from regulars.kit.releases import THIS_RELEASE

# An arbitrary number that identifies the lock.
ADVISORY_LOCK: Final = 7_345_112_002
CHECK_INTERVAL_S: Final = 2.0
JOIN_S_MAX: Final = 2.0
# The beginning of the application name of a connection that holds the lock. The newest known migration follows, and the
# fingerprint of the encryption key, or `-` without a key; older releases add less.
APPLICATION_NAME: Final = "regulars in use"
NO_KEY: Final = "-"
# The child processes of a killed server need some time to end.
RESTORE_WAIT: Final = "3s"

Connection = psycopg.Connection[Any]

_log = log.get(__name__)


class InUseError(Exception):
    """Another process uses the database or the data folder; the message is a sentence for the operator."""


class ConnectedProcess(NamedTuple):
    """A connected server or worker: the newest migration it knows, and the fingerprint of its encryption key if it
    publishes one."""

    release: int
    fingerprint: str | None


class Registration:
    """What this process publishes about itself: the application name of the connection that holds its lock."""

    def __init__(self) -> None:
        self.name = f"{APPLICATION_NAME} {THIS_RELEASE:04}"
        self.has_ended = False
        # Set when there is something to do before the next check.
        self.wake = threading.Event()

    def publish_key_fingerprint(self, fingerprint: str | None) -> None:
        """Let `regulars vault seal` check that all connected processes have the same encryption key."""
        self.name = f"{APPLICATION_NAME} {THIS_RELEASE:04} {fingerprint or NO_KEY}"
        self.wake.set()

    def end(self) -> None:
        self.has_ended = True
        self.wake.set()


@contextlib.contextmanager
def shared_lock(url: str) -> Iterator[Registration]:
    """Hold the lock together with all other servers and workers; raises InUseError while a restore runs."""
    registration = Registration()
    connection = _connect(url, registration.name)
    if connection is not None and not _try_lock(connection):
        connection.close()
        raise InUseError("The database is being restored; start again when that is done.")
    if connection is None:
        _log.warning("in_use.lock_lost")
    lock_thread = threading.Thread(target=_hold_lock, args=(url, connection, registration), name="in-use", daemon=True)
    lock_thread.start()
    try:
        yield registration
    finally:
        registration.end()
        lock_thread.join(JOIN_S_MAX)


@contextlib.contextmanager
def exclusive(connection: Connection) -> Iterator[None]:
    """Hold the lock on this connection; raises InUseError while a server or a worker holds it."""
    connection.execute("SELECT set_config('lock_timeout', %s, false)", (RESTORE_WAIT,))
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", (ADVISORY_LOCK,))
    except psycopg.errors.LockNotAvailable:
        raise InUseError(
            "A `regulars serve` or `regulars worker` uses the database; stop all of them and try again."
        ) from None
    try:
        yield
    finally:
        # If the connection was lost meanwhile, the lock is released already.
        with contextlib.suppress(psycopg.Error):
            connection.execute("SELECT pg_advisory_unlock(%s)", (ADVISORY_LOCK,))


def list_processes(connection: Connection) -> list[ConnectedProcess]:
    """Return the servers and workers that use the database."""
    rows = connection.execute(
        "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
        " AND starts_with(application_name, %s)",
        (APPLICATION_NAME,),
    ).fetchall()
    return [_parse_name(name.removeprefix(APPLICATION_NAME).strip()) for (name,) in rows]


def _parse_name(description: str) -> ConnectedProcess:
    release, _, fingerprint = description.partition(" ")
    return ConnectedProcess(
        int(release) if release.isdecimal() else 0, fingerprint if fingerprint not in {"", NO_KEY} else None
    )


def _hold_lock(url: str, connection: Connection | None, registration: Registration) -> None:
    while True:
        registration.wake.wait(CHECK_INTERVAL_S)
        registration.wake.clear()
        if registration.has_ended:
            break
        if connection is None:
            connection = _connect(url, registration.name)
            if connection is not None and not _try_lock(connection):
                connection.close()
                connection = None
        elif not _publish_name(connection, registration.name):
            _log.warning("in_use.lock_lost")
            connection.close()
            connection = None
    if connection is not None:
        connection.close()


def _connect(url: str, name: str) -> Connection | None:
    try:
        return db_session.connect(url, application_name=name)
    except psycopg.Error:
        return None


def _try_lock(connection: Connection) -> bool:
    """Try to take the shared lock; an error counts as success, because it must not stop a server."""
    try:
        return connection.execute("SELECT pg_try_advisory_lock_shared(%s)", (ADVISORY_LOCK,)).fetchone() == (True,)
    except psycopg.Error:
        return True


def _publish_name(connection: Connection, name: str) -> bool:
    """Set the application name; return whether the connection is alive."""
    try:
        connection.execute("SELECT set_config('application_name', %s, false)", (name,))
    except psycopg.Error:
        return False
    return True
