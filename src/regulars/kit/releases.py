"""Refuse to run a release that is too old for the database: each migration names the oldest server and worker allowed.

A release is identified by the number of its newest migration. A worker that is too old would cause damage without an
error: it deletes events from the outbox for which it has no listener, and data that a newer release derives from them
would be missing.
"""

import re
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, LiteralString, Self

import msgspec
import psycopg

from regulars.kit.db import Database

MIGRATIONS: Final = Path(__file__).parent.parent / "migrations"
# The first two lines of a migration.
LIMITS: Final = re.compile(rb"-- oldest server: ([0-9]{4})\n-- oldest worker: ([0-9]{4})\n")

# Read through JSON, because databases from before migration 0081 have no such columns.
OLDEST_ALLOWED: Final[LiteralString] = """
SELECT max((to_jsonb(m) ->> 'oldest_server')::int), max((to_jsonb(m) ->> 'oldest_worker')::int) FROM migrations AS m
"""


class ProcessRole(StrEnum):
    """The role of a process; every command that writes counts as a server."""

    SERVER = "server"
    WORKER = "worker"


class OutdatedReleaseError(Exception):
    """The message is one sentence for the person who started the process."""


class Limits(msgspec.Struct, frozen=True):
    """The numbers of the oldest release that may run as a server and as a worker; None if any release may."""

    server: int | None
    worker: int | None

    @classmethod
    def of_file(cls, statements: bytes) -> Self | None:
        match = LIMITS.match(statements)
        return cls(int(match[1]), int(match[2])) if match else None

    def refusal(self, role: ProcessRole, *, release: int) -> str | None:
        """Say in one sentence why the release of this number must not run; None if it may run."""
        oldest = self.server if role is ProcessRole.SERVER else self.worker
        if oldest is None or release >= oldest:
            return None
        server_hint = (
            " (`regulars serve --no-worker` may still run)"
            if role is ProcessRole.WORKER and self._allows_server(release)
            else ""
        )
        return (
            f"A newer release migrated the database: its {role}s need migration {oldest:04}, and this release ends at"
            f" {release:04}; start the newer release{server_hint}, or restore the backup from before the upgrade."
        )

    def _allows_server(self, release: int) -> bool:
        return self.server is None or release >= self.server


def newest_migration(folder: Path) -> int:
    return max((int(file.name[:4]) for file in folder.glob("[0-9][0-9][0-9][0-9]_*.sql")), default=0)


# The number of this release, read once, because an upgrade may replace the files of a running process.
THIS_RELEASE: Final = newest_migration(MIGRATIONS)


def refuse_outdated(connection: psycopg.Connection[Any], *roles: ProcessRole, release: int = THIS_RELEASE) -> None:
    """Raise if a migration of a newer release excludes this one from one of the roles."""
    limits = read_limits(connection)
    for role in roles:
        reason = limits.refusal(role, release=release)
        if reason is not None:
            raise OutdatedReleaseError(reason)


def read_limits(connection: psycopg.Connection[Any]) -> Limits:
    if connection.execute("SELECT to_regclass('migrations') IS NOT NULL").fetchone() != (True,):
        return Limits(None, None)
    [(server, worker)] = connection.execute(OLDEST_ALLOWED).fetchall()
    return Limits(server, worker)


def exclude_older(connection: psycopg.Connection[Any], *, than: int) -> None:
    """Refuse releases older than `than` from now on, as if the migration of that number had named it as the oldest."""
    connection.execute(
        "UPDATE migrations SET oldest_server = %(n)s, oldest_worker = %(n)s WHERE name LIKE %(name)s",
        {"n": than, "name": f"{than:04}\\_%"},
    )


async def find_refusal(database: Database, role: ProcessRole, *, until: float) -> str | None:
    """Say why this running process must stop; a newer release may have migrated the database since its start."""
    async with database.reading(until=until) as tx:
        [(server, worker)] = await tx.fetch(OLDEST_ALLOWED)
    return Limits(server, worker).refusal(role, release=THIS_RELEASE)
