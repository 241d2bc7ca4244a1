"""Migrate a database to the schema of this release: apply numbered SQL files, forward only, one transaction each."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import psycopg

from regulars.kit import db_session, failpoint, releases
from regulars.kit.releases import MIGRATIONS, Limits, ProcessRole

# Another machine (node) may be migrating the same database: wait as long as its migration may take.
OTHER_NODE_WAIT_S = 3600.0
OTHER_NODE_POLL_S = 0.2
# While a migration waits for the lock of a table, every request that needs the table waits behind it.
LOCK_TIMEOUT = "5s"
STATEMENT_TIMEOUT = "10min"
# CREATE INDEX CONCURRENTLY reads the table twice and waits for all older transactions.
CONCURRENT_TIMEOUT = "1h"
# A file with this line among its first comments runs outside a transaction.
OUTSIDE_TRANSACTION = b"-- outside a transaction"
TRY_LOCK = "SELECT pg_try_advisory_xact_lock(7345112001)"
# Citus changes the shards of a table in parallel, over a connection each, and then refuses to create a function in the
# same transaction. With one shard after the other, both are possible.
SHARDS_ONE_BY_ONE = """
SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true) FROM pg_extension WHERE extname = 'citus'
"""


class MigrationError(Exception):
    """The message is one sentence for the person who runs the command."""


def migrate(
    url: str, *, folder: Path = MIGRATIONS, on_applied: Callable[[int], None] = lambda _count: None
) -> list[str]:
    """Apply the missing migrations and return their names. Several nodes may call it at once. `on_applied` gets the
    number of those that are applied."""
    try:
        with db_session.connect(url) as connection:
            # The driver must not prepare statements: a prepared statement keeps its snapshot until the next statement
            # of its transaction, and an index build waits for that.
            connection.prepare_threshold = None
            releases.refuse_outdated(connection, ProcessRole.SERVER, release=releases.newest_migration(folder))
            _create_migrations_table(connection)
            applied: list[str] = []
            for file in _files(folder):
                if _apply(url, connection, file):
                    applied.append(file.stem)
                    on_applied(len(applied))
            return applied
    except psycopg.OperationalError as error:
        raise MigrationError(f"The database could not be migrated: {_one_line(error)}") from error


def pending(url: str, *, folder: Path = MIGRATIONS) -> list[str]:
    """Return the names of the migrations of this release that the database lacks."""
    with db_session.connect(url) as connection:
        has_table = connection.execute("SELECT to_regclass('migrations') IS NOT NULL").fetchone()
        applied = connection.execute("SELECT name FROM migrations").fetchall() if has_table == (True,) else []
    names = {name for (name,) in applied}
    return [file.stem for file in _files(folder) if file.stem not in names]


def _files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    numbers = [file.name[:4] for file in files]
    if len(set(numbers)) != len(numbers):
        raise MigrationError(f"Two migrations in {folder} have the same number.")
    return files


def _create_migrations_table(connection: psycopg.Connection[Any]) -> None:
    with _locked(connection):
        connection.execute(
            """
            CREATE TABLE IF NOT EXISTS migrations (
                name text PRIMARY KEY,
                applied_at timestamptz NOT NULL DEFAULT now(),
                oldest_server integer,
                oldest_worker integer
            )
            """
        )


def _apply(url: str, connection: psycopg.Connection[Any], file: Path) -> bool:
    """Apply a migration; return False if it was applied already, which is checked under the lock, because another node
    may have applied it while this one waited."""
    with _locked(connection):
        if (file.stem,) in connection.execute("SELECT name FROM migrations").fetchall():
            return False
        statements = file.read_bytes()
        if _runs_outside_transaction(statements):
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            _run_outside_transaction(url, file, statements)
        else:
            connection.execute(
                "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)",
                (LOCK_TIMEOUT, STATEMENT_TIMEOUT),
            )
            connection.execute(SHARDS_ONE_BY_ONE)
            _execute(connection, file, statements, consequence="changed nothing")
        failpoint.hit("migration", connection.close)
        _record_migration(connection, file.stem, Limits.of_file(statements))
    return True


def _record_migration(connection: psycopg.Connection[Any], name: str, limits: Limits | None) -> None:
    if limits is None:
        # A migration from before number 0081, which adds the columns `oldest_server` and `oldest_worker`.
        connection.execute("INSERT INTO migrations (name) VALUES (%s)", (name,))
        return
    connection.execute(
        "INSERT INTO migrations (name, oldest_server, oldest_worker) VALUES (%s, %s, %s)",
        (name, limits.server, limits.worker),
    )


def _run_outside_transaction(url: str, file: Path, statements: bytes) -> None:
    """Run statements that PostgreSQL does not allow in a transaction, such as CREATE INDEX CONCURRENTLY.

    Each statement commits by itself, so it must be possible to run the file again after an interruption. The caller's
    connection holds the lock, in a transaction that is idle meanwhile and so does not delay the index build; this
    function uses a second connection.
    """
    with db_session.connect(url) as second_connection:
        second_connection.execute(
            "SELECT set_config('lock_timeout', %(limit)s, false), set_config('statement_timeout', %(limit)s, false)",
            {"limit": CONCURRENT_TIMEOUT},
        )
        for statement in statements.split(b";\n"):
            if statement.strip():
                _execute(second_connection, file, statement, consequence="is to be run again")


def _execute(connection: psycopg.Connection[Any], file: Path, statements: bytes, *, consequence: str) -> None:
    try:
        connection.execute(statements)
    except psycopg.Error as error:
        raise MigrationError(f"Migration {file.stem} failed and {consequence}: {_one_line(error)}") from error


@contextmanager
def _locked(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Run the block in a transaction that holds the migration lock.

    Each attempt is a separate transaction: a node that waits inside a transaction may hold a snapshot, for which an
    index build of another node waits, and both would wait for ever.
    """
    deadline = time.monotonic() + OTHER_NODE_WAIT_S
    while True:
        with connection.transaction():
            if connection.execute(TRY_LOCK).fetchone() == (True,):
                yield
                return
        if time.monotonic() > deadline:
            raise MigrationError("Another node has been migrating the database for an hour: look at it first.")
        time.sleep(OTHER_NODE_POLL_S)


def _one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


def _runs_outside_transaction(statements: bytes) -> bool:
    comments = takewhile(lambda line: line.startswith(b"--"), statements.split(b"\n"))
    return OUTSIDE_TRANSACTION in comments
