"""Migrate a database to the schema of this release: numbered SQL files, forward only, one transaction each."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import psycopg

from regulars.kit import db_session, failpoint, releases
from regulars.kit.releases import MIGRATIONS, Limits, ProcessRole

# Another node may be migrating at the same time: wait as long as its migration may take.
OTHER_NODE_WAIT_S = 3600.0
OTHER_NODE_POLL_S = 0.2
# While a migration waits for its lock, every request that needs the table waits behind it, so it waits only this long.
LOCK_TIMEOUT = "5s"
STATEMENT_TIMEOUT = "10min"
# CREATE INDEX CONCURRENTLY reads the table twice and waits for all older transactions.
OUTSIDE_TIMEOUT = "1h"
# A file with this line among its first comments runs outside a transaction.
OUTSIDE = b"-- outside a transaction"
TRY_LOCK = "SELECT pg_try_advisory_xact_lock(7345112001)"
# Citus changes the shards of a table in parallel, over a connection each, and then refuses to create a function in the
# same transaction. Sequentially, both are possible.
ONE_PART_AT_A_TIME = """
SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true) FROM pg_extension WHERE extname = 'citus'
"""


class MigrationError(Exception):
    """The message is one sentence for the person who runs the command."""


def migrate(url: str, *, folder: Path = MIGRATIONS) -> list[str]:
    """Apply the missing migrations and return their names. Several nodes may call it at once."""
    try:
        with db_session.connect(url) as connection:
            # A prepared statement keeps its snapshot until the next statement of its transaction, and index builds wait
            # for that. The driver would prepare statements that run often.
            connection.prepare_threshold = None
            releases.refuse_outdated(connection, ProcessRole.SERVER, known=releases.newest_migration(folder))
            _create_register(connection)
            return [file.stem for file in _files(folder) if _apply(url, connection, file)]
    except psycopg.OperationalError as error:
        raise MigrationError(f"The database could not be migrated: {_one_line(error)}") from error


def pending(url: str, *, folder: Path = MIGRATIONS) -> list[str]:
    """The names of the migrations of this release that the database lacks."""
    with db_session.connect(url) as connection:
        known = connection.execute("SELECT to_regclass('migrations') IS NOT NULL").fetchone()
        applied = connection.execute("SELECT name FROM migrations").fetchall() if known == (True,) else []
    names = {name for (name,) in applied}
    return [file.stem for file in _files(folder) if file.stem not in names]


def _files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    numbers = [file.name[:4] for file in files]
    if len(set(numbers)) != len(numbers):
        raise MigrationError(f"Two migrations in {folder} have the same number.")
    return files


def _create_register(connection: psycopg.Connection[Any]) -> None:
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
    """Apply a migration; return False if it was applied already. That is checked under the lock, because another node
    may have applied it while this one waited."""
    with _locked(connection):
        if (file.stem,) in connection.execute("SELECT name FROM migrations").fetchall():
            return False
        statements = file.read_bytes()
        if _is_outside(statements):
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            _run_outside(url, file, statements)
        else:
            connection.execute(
                "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)",
                (LOCK_TIMEOUT, STATEMENT_TIMEOUT),
            )
            connection.execute(ONE_PART_AT_A_TIME)
            _execute(connection, file, statements, consequence="changed nothing")
        failpoint.hit("migration", connection.close)
        _register(connection, file.stem, Limits.of_file(statements))
    return True


def _register(connection: psycopg.Connection[Any], name: str, limits: Limits | None) -> None:
    if limits is None:
        # A migration from before 0081, which adds the columns of the limits.
        connection.execute("INSERT INTO migrations (name) VALUES (%s)", (name,))
        return
    connection.execute(
        "INSERT INTO migrations (name, oldest_server, oldest_worker) VALUES (%s, %s, %s)",
        (name, limits.server, limits.worker),
    )


def _run_outside(url: str, file: Path, statements: bytes) -> None:
    """Run statements that PostgreSQL does not allow in a transaction, such as CREATE INDEX CONCURRENTLY.

    Each statement commits by itself, so it must be possible to run the file again after an interruption. The caller's
    connection holds the lock, in a transaction that is idle meanwhile and so does not delay the index build; this
    function uses a second connection.
    """
    with db_session.connect(url) as outside:
        outside.execute(
            "SELECT set_config('lock_timeout', %(it)s, false), set_config('statement_timeout', %(it)s, false)",
            {"it": OUTSIDE_TIMEOUT},
        )
        for statement in statements.split(b";\n"):
            if statement.strip():
                _execute(outside, file, statement, consequence="is to be run again")


def _execute(connection: psycopg.Connection[Any], file: Path, statements: bytes, *, consequence: str) -> None:
    try:
        connection.execute(statements)
    except psycopg.Error as error:
        raise MigrationError(f"Migration {file.stem} failed and {consequence}: {_one_line(error)}") from error


@contextmanager
def _locked(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """A transaction that holds the migration lock.

    Each attempt is a separate transaction: a node that waits inside a transaction may hold a snapshot, for which an
    index build of the other node waits, and both would wait for ever.
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


def _is_outside(statements: bytes) -> bool:
    comments = takewhile(lambda line: line.startswith(b"--"), statements.split(b"\n"))
    return OUTSIDE in comments
