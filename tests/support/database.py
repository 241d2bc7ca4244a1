"""Runs a PostgreSQL for the tests of a process, and creates a database per test from a migrated template."""

import atexit
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql
from tests.support.open_database import close_idle

from regulars.kit import migrate
from regulars.postgres import embedded

FOLDER_PREFIX = "regulars-test-"
IN_MEMORY = Path("/dev/shm")  # noqa: S108  # a folder with a random name is made in it
FREE_BYTES_MIN = 1024**3

# By URL of the server; see `_administrator`.
_administrators: dict[str, psycopg.Connection] = {}


def new_data_folder() -> Path:
    """Creates a folder, in memory if there is room, that the account of the database can read even if root runs the tests."""
    in_memory = IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free >= FREE_BYTES_MIN
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=IN_MEMORY if in_memory else None))
    folder.chmod(0o755)
    return folder / "data"


def copy_data_folder(original: Path, copy: Path) -> None:
    """Copies the data folder of a database that does not run; its files belong to the account of the database."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "--archive", str(original), str(copy)], check=True, timeout=60)


@contextmanager
def throwaway_server(data_dir: Path) -> Iterator[str]:
    """Runs a server in a folder of `new_data_folder` and deletes the folder afterwards; refuses any other folder."""
    if not data_dir.parent.name.startswith(FOLDER_PREFIX):
        raise ValueError(f"{data_dir} was not made for a throwaway server")
    try:
        yield embedded.ensure_running(data_dir, throwaway=True)
    finally:
        embedded.release(data_dir)
        shutil.rmtree(data_dir.parent)


def with_database(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


@contextmanager
def new_database(server_url: str, *, template: str = "template0") -> Iterator[str]:
    name = f"regulars_test_{uuid.uuid4().hex[:12]}"
    # A database to which a connection is open cannot be copied.
    close_idle(with_database(server_url, template))
    # In memory a file copy takes 15 ms and a copy through the WAL 200 ms; on disk the file copy is slower, because it
    # needs two checkpoints.
    strategy: LiteralString = "FILE_COPY" if quote(str(IN_MEMORY), safe="") in server_url else "WAL_LOG"
    _administrator(server_url).execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY {}").format(
            sql.Identifier(name), sql.Identifier(template), sql.SQL(strategy)
        )
    )
    try:
        yield with_database(server_url, name)
    finally:
        _administrator(server_url).execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )


def _administrator(server_url: str) -> psycopg.Connection:
    """A connection that stays open until the process ends: two new ones per test take half as long as the copy itself."""
    connection = _administrators.get(server_url)
    if connection is None or connection.closed:
        connection = _administrators[server_url] = psycopg.connect(server_url, autocommit=True)
        atexit.register(connection.close)
    return connection


@contextmanager
def migrated_template(server_url: str) -> Iterator[str]:
    """Creates a database with all migrations; yields its name."""
    with new_database(server_url) as url:
        migrate.migrate(url)
        yield urlsplit(url).path.removeprefix("/")


# The part of the Citus catalog that we query. `planted_nodes` has the responses of the nodes.
CATALOG_OF_A_CLUSTER = """
CREATE TABLE pg_dist_node (nodeid int PRIMARY KEY, nodename text, nodeport int, noderole text DEFAULT 'primary');
CREATE TABLE pg_dist_partition (logicalrelid regclass PRIMARY KEY);
CREATE TABLE planted_nodes (nodeid int, success boolean, versions text, clock_off interval);
CREATE TABLE planted_sizes (logicalrelid regclass PRIMARY KEY, bytes bigint);
CREATE FUNCTION run_command_on_all_nodes(
    command text, parallel boolean DEFAULT true, give_warning_for_connection_errors boolean DEFAULT false
) RETURNS TABLE (nodeid int, success boolean, result text) LANGUAGE sql AS $$
    SELECT nodeid, success, versions || ' ' || extract(epoch FROM clock_timestamp() + clock_off) FROM planted_nodes
$$;
CREATE TABLE pg_dist_placement (shardid bigint, groupid int);
CREATE TABLE planted_shards (organization_id uuid PRIMARY KEY, shardid bigint);
CREATE FUNCTION get_shard_id_for_distribution_column(relation regclass, value uuid) RETURNS bigint LANGUAGE sql AS $$
    SELECT shardid FROM planted_shards WHERE organization_id = value
$$;
CREATE FUNCTION citus_relation_size(relation regclass) RETURNS bigint LANGUAGE sql AS $$
    SELECT bytes FROM planted_sizes WHERE logicalrelid = relation
$$;
"""


def is_reachable(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def plant_catalog_of_a_cluster(url: str) -> None:
    """Creates a cluster catalog for a test to fill; all tables of organizations are distributed and empty."""
    pretend_to_be_a_cluster(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(CATALOG_OF_A_CLUSTER)
        connection.execute(
            "INSERT INTO pg_dist_partition SELECT relname::regclass FROM pg_class JOIN pg_attribute ON attrelid = oid"
            " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attname = 'organization_id'"
        )
        connection.execute("INSERT INTO planted_sizes SELECT logicalrelid, 0 FROM pg_dist_partition")


def pretend_to_be_a_cluster(url: str) -> None:
    """Registers the extension of a cluster (Citus) without installing it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET allow_system_table_mods = on")
        connection.execute(
            "INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)"
            " SELECT 7345112, 'citus', r.oid, n.oid, false, '13' FROM pg_roles r, pg_namespace n"
            " WHERE r.rolname = current_user AND n.nspname = 'pg_catalog'"
        )
