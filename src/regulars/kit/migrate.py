"""Brings a database to the schema of this release: numbered SQL files, forward only, one transaction each."""

import re
from importlib import resources
from pathlib import Path
from typing import Any

import psycopg

from regulars.kit import connecting

MIGRATIONS = Path(__file__).parent.parent / "migrations"
# Another node that starts at the same time may be migrating: wait for it as long as its migration may take.
OTHER_NODE_WAIT = "10min"
# A migration that cannot get its lock at once would make every request behind it wait.
LOCK_TIMEOUT = "5s"
STATEMENT_TIMEOUT = "10min"
INCLUDE = re.compile(rb"^-- include: (\S+)$", re.MULTILINE)
ADVISORY_LOCK = 7_345_112_001


class MigrationError(Exception):
    """The message is one sentence for the person who runs the command."""


def migrate(url: str, *, folder: Path = MIGRATIONS) -> list[str]:
    """Applies what is missing and answers the names it applied. Several nodes may call it at once."""
    try:
        with connecting.connect(url) as connection:
            _create_register(connection)
            return [file.stem for file in _files(folder) if _apply(connection, file)]
    except psycopg.OperationalError as error:
        raise MigrationError(f"The database could not be migrated: {_one_line(error)}") from error


def pending(url: str, *, folder: Path = MIGRATIONS) -> list[str]:
    """The names of the migrations that this release brings and the database has not had yet."""
    with connecting.connect(url) as connection:
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
    with connection.transaction():
        _wait_for_other_nodes(connection)
        connection.execute(
            """
            CREATE TABLE IF NOT EXISTS migrations (
                name text PRIMARY KEY,
                applied_at timestamptz NOT NULL DEFAULT now()
            )
            """
        )


def _apply(connection: psycopg.Connection[Any], file: Path) -> bool:
    """Whether it was applied is asked under the lock: the node before us may have done it while we waited.

    The lock belongs to the transaction and not to the session, so it also holds behind a pooler that lends sessions out
    by transaction.
    """
    with connection.transaction():
        _wait_for_other_nodes(connection)
        if connection.execute("SELECT 1 FROM migrations WHERE name = %s", (file.stem,)).fetchone():
            return False
        connection.execute("SELECT set_config('lock_timeout', %s, true)", (LOCK_TIMEOUT,))
        try:
            connection.execute(_statements(file))
        except psycopg.Error as error:
            raise MigrationError(f"Migration {file.stem} failed and changed nothing: {_one_line(error)}") from error
        connection.execute("INSERT INTO migrations (name) VALUES (%s)", (file.stem,))
    return True


def _statements(file: Path) -> bytes:
    """The file's text; a line `-- include: package/path` is replaced by that file of an installed package."""
    return INCLUDE.sub(lambda match: _file_of_package(match[1].decode()), file.read_bytes())


def _file_of_package(path: str) -> bytes:
    package, _, inside = path.partition("/")
    return resources.files(package).joinpath(inside).read_bytes()


def _wait_for_other_nodes(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)",
        (OTHER_NODE_WAIT, STATEMENT_TIMEOUT),
    )
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))


def _one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
