"""Who uses the database: servers and workers hold a shared lock in it, and a restore takes it for itself alone.

The lock lies in PostgreSQL, because the nodes that share an external database have nothing else in common. It guards
against an operator's oversight, so losing it must never hurt a server: whatever goes wrong with its connection is
tried again in the background.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import psycopg

from regulars.kit import connecting, log
from regulars.kit.releases import KNOWN
from regulars.processes.errors import InUseError

ADVISORY_LOCK: Final = 7_345_112_002
CHECK_INTERVAL_S: Final = 2.0
JOIN_S_MAX: Final = 2.0
# Followed by the number of the release, which servers and workers of older releases do not say.
APPLICATION_NAME: Final = "regulars in use"
# Children of a server that was killed need a moment to notice.
RESTORE_WAIT: Final = "3s"

Connection = psycopg.Connection[Any]

_log = log.get(__name__)


@contextlib.contextmanager
def shared(url: str) -> Iterator[None]:
    """Hold the lock beside every other server and worker; refuse to begin beneath a restore."""
    connection = _connected(url)
    if connection is not None and not _has_locked(connection):
        connection.close()
        raise InUseError("The database is being restored; start again when that is done.")
    if connection is None:
        _log.warning("in_use.lock_lost")
    stop = threading.Event()
    keeper = threading.Thread(target=_keep, args=(url, connection, stop), name="in-use", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        stop.set()
        keeper.join(JOIN_S_MAX)


@contextlib.contextmanager
def alone(connection: Connection) -> Iterator[None]:
    """Hold the lock on this connection while no server and no worker does."""
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
        # On a connection that was lost meanwhile the lock is gone as well.
        with contextlib.suppress(psycopg.Error):
            connection.execute("SELECT pg_advisory_unlock(%s)", (ADVISORY_LOCK,))


def has_older(connection: Connection, *, than: int) -> bool:
    """Whether a server or worker of a release before this migration uses the database."""
    rows = connection.execute(
        "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
        " AND starts_with(application_name, %s)",
        (APPLICATION_NAME,),
    ).fetchall()
    numbers = [name.removeprefix(APPLICATION_NAME).strip() for (name,) in rows]
    return any(not number.isdecimal() or int(number) < than for number in numbers)


def _keep(url: str, connection: Connection | None, stop: threading.Event) -> None:
    while not stop.wait(CHECK_INTERVAL_S):
        if connection is None:
            connection = _connected(url)
            if connection is not None and not _has_locked(connection):
                connection.close()
                connection = None
        elif not _answers(connection):
            _log.warning("in_use.lock_lost")
            connection.close()
            connection = None
    if connection is not None:
        connection.close()


def _connected(url: str) -> Connection | None:
    try:
        return connecting.connect(url, application_name=f"{APPLICATION_NAME} {KNOWN:04}")
    except psycopg.Error:
        return None


def _has_locked(connection: Connection) -> bool:
    """A database that cannot say counts as locked: it must not keep a server from running."""
    try:
        return connection.execute("SELECT pg_try_advisory_lock_shared(%s)", (ADVISORY_LOCK,)).fetchone() == (True,)
    except psycopg.Error:
        return True


def _answers(connection: Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True
