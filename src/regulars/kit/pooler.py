"""Whether a pooler stands before PostgreSQL, and whether it lends connections by session or by transaction.

We set what a session needs once and listen on it, and PostgreSQL prepares statements in it. A pooler that gives each
transaction another session breaks all three, and says nothing.
"""

from enum import StrEnum
from typing import Any, Final

import psycopg

from regulars.kit import connecting

# Other clients of the pooler may borrow the session that we look for.
TRIES: Final = 3
FIX: Final = "set `pool_mode = session` in the pooler, or name PostgreSQL itself in DATABASE_URL"


class Pooling(StrEnum):
    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"


class TransactionPoolerError(Exception):
    """The message is one sentence for the person who runs the command."""


def refuse_by_transaction(connection: psycopg.Connection[Any], url: str) -> None:
    if find_pooling(connection, url) is Pooling.TRANSACTION:
        raise TransactionPoolerError(
            f"A pooler stands before PostgreSQL and lends connections by transaction, which loses sessions; {FIX}."
        )


def find_pooling(connection: psycopg.Connection[Any], url: str) -> Pooling:
    """Compare the sessions in which statements run with the one that greeted, and with that of another client."""
    if _session(connection) == connection.info.backend_pid:
        return Pooling.NONE
    # By session, two clients that are both connected never share one, and none of them ever gets another.
    with connecting.connect(url) as other:
        for _ in range(TRIES):
            ours = _session(connection)
            with other.transaction():
                if _session(other) == ours or _session(connection) != ours:
                    return Pooling.TRANSACTION
    return Pooling.SESSION


def _session(connection: psycopg.Connection[Any]) -> int:
    [(number,)] = connection.execute("SELECT pg_backend_pid()").fetchall()
    return int(number)
