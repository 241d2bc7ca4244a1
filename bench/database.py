"""Runs PostgreSQL for the benchmark: the embedded one, on disk, with its durable settings."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from regulars.kit.db import Database
from regulars.kit.migrate import migrate
from regulars.organizations.manage import create_key, create_organization
from regulars.postgres import configuration, embedded
from tickets import CUSTOMERS, CUSTOMERS_OF_MANY, STORES

# On disk by convention, while /tmp may be in memory.
DATA_PARENT = Path("/var/tmp")  # noqa: S108  # the folder in it is made by mkdtemp
TEMPLATE = "bench_template"
TEMPLATE_OF_MANY = "bench_template_of_many"
# Migrated by the source of another commit, because an older release refuses a newer database.
TEMPLATE_BESIDE = "bench_template_beside"
ORGANIZATIONS = 200
# Autovacuum of these rows would run during another measurement.
AUTOVACUUM_OFF = "ALTER TABLE sales_events SET (autovacuum_enabled = off)"


@dataclass(frozen=True)
class Organization:
    """An organization with stores and customers, and its API key."""

    id: str
    key: str


@dataclass(frozen=True)
class Cluster:
    data_dir: Path
    url: str
    programs: Path

    @property
    def postmaster_pid(self) -> int:
        return int((self.data_dir / "cluster" / "postmaster.pid").read_text().split()[0])

    def url_of(self, database: str) -> str:
        return self.url.replace("/regulars?", f"/{database}?")

    def execute(self, statement: str | sql.Composed, database: str = "regulars") -> None:
        with psycopg.connect(self.url_of(database), autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]  # statements of this folder only

    def count(self, table: str, database: str) -> int:
        with psycopg.connect(self.url_of(database)) as connection:
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
        return int(row[0]) if row else 0

    def size_bytes(self, database: str) -> int:
        with psycopg.connect(self.url_of(database)) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(row[0]) if row else 0

    def settings(self) -> dict[str, str]:
        names = [
            "server_version",
            "fsync",
            "synchronous_commit",
            "full_page_writes",
            "shared_buffers",
            "wal_compression",
        ]
        with psycopg.connect(self.url) as connection:
            rows = connection.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (names,)).fetchall()
        return dict(rows)

    def clone(self, database: str, *, template: str = TEMPLATE) -> str:
        """Creates a database for one measurement, then a checkpoint, so that all measurements start alike."""
        self.drop(database)
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        self.execute(statement.format(sql.Identifier(database), sql.Identifier(template)))
        self.execute("CHECKPOINT")
        return self.url_of(database)

    def drop(self, database: str) -> None:
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    parent = Path(tempfile.mkdtemp(prefix="regulars-bench-", dir=DATA_PARENT))
    parent.chmod(0o755)
    data_dir = parent / "data"
    try:
        # Servers that are measured alternately all stay connected.
        configuration.SETTINGS["max_connections"] = "500"
        url = embedded.ensure_running(data_dir)
        yield Cluster(data_dir=data_dir, url=url, programs=embedded.binaries(data_dir))
    finally:
        embedded.release(data_dir)
        shutil.rmtree(parent, ignore_errors=True)


def make_templates(cluster: Cluster) -> list[Organization]:
    """Creates a template with one organization, and one with many for a single scenario.

    There are two because each organization costs time, such as a check for jobs each second.
    """
    cluster.drop(TEMPLATE)
    cluster.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    url = cluster.url_of(TEMPLATE)
    migrate(url)
    organizations = asyncio.run(_create_organizations(url, range(1)))
    with psycopg.connect(url, autocommit=True) as connection:
        _fill(connection, organizations)
        _register(connection, organizations[0], CUSTOMERS)
        connection.execute("VACUUM ANALYZE")
    url = cluster.clone(TEMPLATE_OF_MANY)
    others = asyncio.run(_create_organizations(url, range(1, ORGANIZATIONS)))
    with psycopg.connect(url, autocommit=True) as connection:
        _fill(connection, others)
        for organization in others:
            _register(connection, organization, CUSTOMERS_OF_MANY)
        connection.execute("VACUUM ANALYZE")
    return [*organizations, *others]


def make_template_of_commit(cluster: Cluster, source: Path) -> None:
    """Copies the rows of the template into tables that the source of another commit created."""
    cluster.drop(TEMPLATE_BESIDE)
    cluster.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE_BESIDE)))
    url = cluster.url_of(TEMPLATE_BESIDE)
    program = "import sys; from regulars.kit.migrate import migrate; migrate(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, url], env={**os.environ, "PYTHONPATH": str(source)}, check=True)
    with (
        psycopg.connect(cluster.url_of(TEMPLATE)) as template,
        psycopg.connect(url, autocommit=True) as beside,
    ):
        beside.execute("SET session_replication_role = replica")  # tables come in any order
        stored = _columns_of_tables(template)
        for table, columns in _columns_of_tables(beside).items():
            shared = [column for column in columns if column in stored.get(table, ())]
            if shared:
                _copy(template, beside, table, shared)
        beside.execute("VACUUM ANALYZE")


def _columns_of_tables(connection: "psycopg.Connection[Any]") -> dict[str, list[str]]:
    rows = connection.execute(
        "SELECT relname, array_agg(attname ORDER BY attnum) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
        " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'migrations'"
        " AND attnum > 0 AND NOT attisdropped AND attgenerated = '' GROUP BY relname"
    ).fetchall()
    return dict(rows)


def _copy(
    source: "psycopg.Connection[Any]", target: "psycopg.Connection[Any]", table: str, columns: Sequence[str]
) -> None:
    """Replaces the rows that the migrations wrote with the rows of the source."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    parts = {"table": sql.Identifier(table), "names": names}
    target.execute(sql.SQL("DELETE FROM {table}").format(**parts))
    with (
        source.cursor().copy(sql.SQL("COPY {table} ({names}) TO STDOUT").format(**parts)) as rows,
        target.cursor().copy(sql.SQL("COPY {table} ({names}) FROM STDIN").format(**parts)) as copied,
    ):
        for piece in rows:
            copied.write(piece)


def _fill(connection: "psycopg.Connection[Any]", organizations: Sequence[Organization]) -> None:
    for organization in organizations:
        connection.execute(
            "INSERT INTO stores (organization_id, id, external_id, name, created_at, updated_at)"
            " SELECT %s::uuid, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid,"
            " 'S' || lpad(n::text, 3, '0'), 'Store ' || n, now(), now() FROM generate_series(1, %s) n",
            (organization.id, STORES),
        )


def _register(connection: "psycopg.Connection[Any]", organization: Organization, customers: int) -> None:
    connection.execute(
        "INSERT INTO profiles (organization_id, id, external_id, first_name, created_at, updated_at)"
        " SELECT %s::uuid, ('00000000-0000-7000-9000-' || lpad(n::text, 12, '0'))::uuid,"
        " 'C' || lpad(n::text, 6, '0'), 'Camille', now(), now() FROM generate_series(1, %s) n",
        (organization.id, customers),
    )


async def _create_organizations(url: str, numbers: range) -> list[Organization]:
    made = []
    database = Database(url)
    async with database.connection() as connection:
        for number in numbers:
            organization = await create_organization(connection, f"bench-{number}")
            _, secret = await create_key(connection, organization.id, "bench")
            made.append(Organization(str(organization.id), secret))
    await database.close()
    return made
