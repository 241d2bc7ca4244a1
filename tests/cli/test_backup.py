import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.cli.conftest import environment, run_here
from tests.support.database import new_database, pretend_to_be_a_cluster
from tests.support.fork_server import fork_server
from tests.support.waiting import wait_until, wait_until_logged

from regulars.processes import in_use

SETTLED_SECONDS_MAX = 150
# More than the pipes between the programs of a restore hold, so that each has to wait for the next.
BALLAST_ROWS = 50_000


@dataclass(frozen=True)
class Shop:
    """A database with an organization and its key, which each test copies, and a backup of it."""

    template: str
    backup: str


@pytest.fixture(scope="module")
def shop(shared_database: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    url, template = shared_database
    folder = tmp_path_factory.mktemp("shop")
    file = str(folder / "shop.dump")
    with new_database(url, template=template) as made:
        variables = environment(DATABASE_URL=made, REGULARS_DATA_DIR=str(folder / "data"))
        for arguments in (
            ["organization", "create", "Shop"],
            ["key", "create", "--organization", "Shop"],
            ["backup", file],
        ):
            ran = run_here(arguments, variables, folder)
            assert ran.code == 0, ran.err
        yield Shop(urlsplit(made).path.removeprefix("/"), file)


@pytest.fixture
def database_url(server_url: str, shop: Shop) -> Iterator[str]:
    with new_database(server_url, template=shop.template) as copy:
        yield copy


def keys(run, **variables):
    return run("key", "list", "--organization", "Shop", "--json", **variables).data


def test_a_backup_restores_into_an_empty_database(regulars, empty_database_url, tmp_path):
    file = tmp_path / "today.dump"
    written = regulars("backup", str(file))
    assert written.code == 0, written.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    restored = regulars("restore", str(file), DATABASE_URL=empty_database_url)
    assert restored.code == 0, restored.err
    assert keys(regulars, DATABASE_URL=empty_database_url) == keys(regulars)


def test_it_carries_an_external_database_into_the_embedded_one(regulars, shop, command, data_dir):
    assert command("restore", shop.backup, REGULARS_DATA_DIR=str(data_dir)).code == 0
    assert keys(command, REGULARS_DATA_DIR=str(data_dir)) == keys(regulars)


def test_data_are_replaced_only_with_force(regulars, shop):
    regulars("organization", "create", "Later")
    assert "--force" in regulars("restore", shop.backup).complains(code=1)
    assert regulars("restore", "--force", shop.backup).code == 0
    assert [each["name"] for each in regulars("organization", "list", "--json").data] == ["Shop"]


def test_an_unused_schema_counts_as_empty(shop, command, shared_database):
    url, template = shared_database
    with new_database(url, template=template) as migrated_url:
        assert command("restore", shop.backup, DATABASE_URL=migrated_url).code == 0


def test_tables_of_another_program_are_not_dropped_without_force(shop, command, empty_database_url):
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE precious (id int)")
    command("restore", shop.backup, DATABASE_URL=empty_database_url).complains(code=1)
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT to_regclass('precious') IS NOT NULL").fetchone() == (True,)


@pytest.mark.parametrize("share", [0, 0.00001, 0.25, 0.5, 0.9])
def test_a_truncated_file_changes_nothing_and_the_error_says_so(regulars, shop, tmp_path, share):
    part = tmp_path / "part.dump"
    content = Path(shop.backup).read_bytes()
    part.write_bytes(content[: int(len(content) * share)])
    before = keys(regulars)
    sentence = regulars("restore", "--force", str(part)).complains(code=1)
    assert f"changed nothing: the file {part} ends in the middle" in sentence
    assert keys(regulars) == before


def fill_with_ballast(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE ballast AS SELECT md5(number::text) FROM generate_series(1, %s) AS number", (BALLAST_ROWS,)
        )


def wait_for_psql(connection: psycopg.Connection, *, count: int, waiting: bool) -> None:
    sessions = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'psql' AND (wait_event_type = 'Lock' OR NOT %s)
    """
    wait_until(lambda: connection.execute(sessions, (waiting,)).fetchone() == (count,))


def test_a_restore_that_is_killed_in_the_middle_changes_nothing(regulars, database_url, tmp_path):
    file = tmp_path / "today.dump"
    fill_with_ballast(database_url)
    assert regulars("backup", str(file)).code == 0
    regulars("organization", "create", "Later")
    with psycopg.connect(database_url) as watching, psycopg.connect(database_url) as standing_in_the_way:
        watching.autocommit = True
        standing_in_the_way.execute("LOCK TABLE organizations IN ACCESS SHARE MODE")
        restoring = subprocess.Popen(
            [sys.executable, "-m", "regulars.cli", "restore", "--force", str(file)],
            env=environment(DATABASE_URL=database_url, REGULARS_DATA_DIR=str(tmp_path / "data")),
            cwd=tmp_path,
        )
        wait_for_psql(watching, count=1, waiting=True)
        restoring.kill()
        restoring.wait(60)
        standing_in_the_way.rollback()
        wait_for_psql(watching, count=0, waiting=False)
        assert watching.execute("SELECT count(*) FROM ballast").fetchone() == (BALLAST_ROWS,)
    names = [each["name"] for each in regulars("organization", "list", "--json").data]
    assert sorted(names) == ["Later", "Shop"]


def test_a_database_that_refuses_the_restore_ends_it_at_once(regulars, database_url, tmp_path):
    file = tmp_path / "today.dump"
    fill_with_ballast(database_url)
    assert regulars("backup", str(file)).code == 0
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = psycopg.sql.Identifier(connection.info.dbname)
        connection.execute(psycopg.sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
    assert "read-only transaction" in regulars("restore", "--force", str(file)).complains(code=1)


def test_nothing_is_restored_beneath_a_server_or_a_worker(regulars, shop, database_url, tmp_path, monkeypatch):
    for arguments, started in (
        (("worker",), "worker.started"),
        (("serve", "--port", "0", "--no-worker"), "server.started"),
    ):
        log = tmp_path / f"{arguments[0]}.log"
        # Another data folder, as on another node.
        using = fork_server().start(
            "tests.support.cli",
            *arguments,
            environment=environment(DATABASE_URL=database_url, REGULARS_DATA_DIR=str(tmp_path / arguments[0])),
            log=log,
            folder=tmp_path,
        )
        try:
            wait_for_users(database_url, count=1)
            with monkeypatch.context() as limits:
                limits.setattr(in_use, "RESTORE_WAIT", "100ms")
                assert "stop all of them" in regulars("restore", "--force", shop.backup).complains(code=1)
            # It takes the lock first, and a signal before the end of its start makes it exit with another code.
            wait_until_logged(log, started)
        finally:
            using.send_signal(signal.SIGTERM)
            assert using.wait(SETTLED_SECONDS_MAX) == 0
    assert regulars("restore", "--force", shop.backup).code == 0


def wait_for_users(database_url: str, *, count: int) -> None:
    held = """
        SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
        WHERE datname = current_database() AND locktype = 'advisory' AND mode = 'ShareLock' AND granted
    """
    with psycopg.connect(database_url, autocommit=True) as connection:
        wait_until(lambda: connection.execute(held).fetchone() == (count,))


def test_a_server_that_loses_the_lock_takes_it_again(database_url, monkeypatch):
    monkeypatch.setattr(in_use, "CHECK_INTERVAL_S", in_use.CHECK_INTERVAL_S / 2)
    with in_use.shared_lock(database_url):
        wait_for_users(database_url, count=1)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND starts_with(application_name, 'regulars in use')"
            )
        wait_for_users(database_url, count=0)
        wait_for_users(database_url, count=1)
    wait_for_users(database_url, count=0)


def test_no_process_starts_during_a_restore(regulars, database_url):
    with psycopg.connect(database_url, autocommit=True) as connection, in_use.exclusive(connection):
        for arguments in (("worker",), ("serve", "--port", "0")):
            assert "is being restored" in regulars(*arguments).complains(code=1)


def test_a_backup_of_a_cluster_restores_where_there_is_none_and_never_replaces_one(
    regulars, database_url, command, empty_database_url, tmp_path
):
    pretend_to_be_a_cluster(database_url)
    file = str(tmp_path / "cluster.dump")
    assert regulars("backup", file).code == 0
    sentence = regulars("restore", file, "--force").complains(code=1)
    assert "cluster" in sentence
    assert "into an empty database" in sentence
    restored = command("restore", file, DATABASE_URL=empty_database_url)
    assert restored.code == 0, restored.err


def test_a_file_that_is_no_backup_is_refused(regulars, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    regulars("restore", "--force", str(tmp_path / "notes.txt")).complains(code=1)
    regulars("restore", str(tmp_path / "missing.dump")).complains(code=2)


def test_an_existing_file_is_replaced_only_with_force(regulars, tmp_path):
    file = tmp_path / "today.dump"
    file.write_text("precious")
    regulars("backup", str(file)).complains(code=2)
    assert file.read_text() == "precious"
    assert regulars("backup", "--force", str(file)).code == 0
    assert file.read_bytes().startswith(b"PGDMP")


def test_a_backup_that_fails_leaves_no_file(command, tmp_path):
    folder = tmp_path / "backups"
    folder.mkdir()
    command("backup", str(folder / "x.dump"), DATABASE_URL="postgresql://u@127.0.0.1:1/x").complains(code=3)
    assert list(folder.iterdir()) == []
