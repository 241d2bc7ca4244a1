"""Check a PostgreSQL server at the start: refuse one that can lose acknowledged writes, or a transaction pooler.

Regulars relies on session settings, LISTEN and prepared statements of a connection. A pooler that gives each
transaction another session breaks all three without an error.
"""

from enum import StrEnum
from typing import Any, Final

import psycopg

from regulars.kit import db_session

# `synchronous_commit` has several durable values (local, remote_write, remote_apply): only `off` loses commits.
UNSAFE_SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
# Another client of the pooler may be using the session that we compare with, so one comparison is not enough.
COMPARISONS: Final = 3
FIX: Final = "set `pool_mode = session` in the pooler, or name PostgreSQL itself in DATABASE_URL"


class NotDurableError(Exception):
    """The message is one sentence for the person who runs the server."""


def assert_durable(connection: psycopg.Connection[Any]) -> None:
    unsafe = unsafe_settings(connection)
    if unsafe:
        raise NotDurableError(
            f"This PostgreSQL may lose acknowledged writes in a crash ({', '.join(unsafe)}); "
            "turn these settings on and start again."
        )


def unsafe_settings(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the settings, as `name = value`, under which a crash can lose acknowledged writes."""
    # `reset_val` is the value at the start of a session, before `db_session` raises it for the session.
    rows = connection.execute(
        "SELECT name, reset_val FROM pg_settings WHERE name = ANY(%s) ORDER BY name", (list(UNSAFE_SETTINGS),)
    ).fetchall()
    return [f"{name} = {setting}" for name, setting in rows if UNSAFE_SETTINGS[name] == setting]


class Pooling(StrEnum):
    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"


class TransactionPoolerError(Exception):
    """The message is one sentence for the person who runs the command."""


def refuse_transaction_pooling(connection: psycopg.Connection[Any], url: str) -> None:
    if find_pooling(connection, url) is Pooling.TRANSACTION:
        raise TransactionPoolerError(
            f"A pooler in front of PostgreSQL lends connections by transaction, which loses sessions; {FIX}."
        )


def find_pooling(connection: psycopg.Connection[Any], url: str) -> Pooling:
    """Find out how connections are pooled: compare the server process (backend) of our statements with the one at
    connect and with that of a second client."""
    if _backend_pid(connection) == connection.info.backend_pid:
        return Pooling.NONE
    # With session pooling, two connected clients never share a session and never change theirs.
    with db_session.connect(url) as second:
        for _ in range(COMPARISONS):
            our_pid = _backend_pid(connection)
            with second.transaction():
                if _backend_pid(second) == our_pid or _backend_pid(connection) != our_pid:
                    return Pooling.TRANSACTION
    return Pooling.SESSION


def _backend_pid(connection: psycopg.Connection[Any]) -> int:
    [(number,)] = connection.execute("SELECT pg_backend_pid()").fetchall()
    return int(number)
