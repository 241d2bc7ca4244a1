import signal
import stat
import subprocess
import sys
import time

import psycopg
import pytest
from tests.cli.conftest import environment
from tests.support.database import pretend_to_be_a_cluster
from tests.support.fork_server import fork_server

from regulars.processes import in_use

SETTLED_SECONDS_MAX = 150
# More than the pipes between the programs of a restore hold, so that each has to wait for the next.
BALLAST_ROWS = 50_000


@pytest.fixture
def filled(regulars):
    regulars("organization", "create", "Shop")
    regulars("key", "create", "--organization", "Shop")
    return regulars


def keys(run, **variables):
    return run("key", "list", "--organization", "Shop", "--json", **variables).data


def test_a_backup_restores_into_an_empty_database(filled, empty_database_url, tmp_path):
    file = tmp_path / "today.dump"
    written = filled("backup", str(file))
    assert written.code == 0, written.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    restored = filled("restore", str(file), DATABASE_URL=empty_database_url)
    assert restored.code == 0, restored.err
    assert keys(filled, DATABASE_URL=empty_database_url) == keys(filled)


def test_it_carries_an_external_database_into_the_embedded_one(filled, command, data_dir, tmp_path):
    file = tmp_path / "today.dump"
    assert filled("backup", str(file)).code == 0
    assert command("restore", str(file), REGULARS_DATA_DIR=str(data_dir)).code == 0
    assert keys(command, REGULARS_DATA_DIR=str(data_dir)) == keys(filled)


def test_data_are_replaced_only_with_force(filled, tmp_path):
    file = tmp_path / "today.dump"
    filled("backup", str(file))
    filled("organization", "create", "Later")
    assert "--force" in filled("restore", str(file)).complains(code=1)
    assert filled("restore", "--force", str(file)).code == 0
    assert [each["name"] for each in filled("organization", "list", "--json").data] == ["Shop"]


def test_an_unused_schema_counts_as_empty(filled, regulars, command, empty_database_url, tmp_path):
    file = tmp_path / "today.dump"
    filled("backup", str(file))
    command("migrate", DATABASE_URL=empty_database_url)
    assert command("restore", str(file), DATABASE_URL=empty_database_url).code == 0


def test_tables_of_another_program_are_not_dropped_without_force(filled, command, empty_database_url, tmp_path):
    file = tmp_path / "today.dump"
    filled("backup", str(file))
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE precious (id int)")
    command("restore", str(file), DATABASE_URL=empty_database_url).complains(code=1)
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT to_regclass('precious') IS NOT NULL").fetchone() == (True,)


@pytest.mark.parametrize("share", [0, 0.00001, 0.25, 0.5, 0.9])
def test_a_truncated_file_changes_nothing_and_the_error_says_so(filled, tmp_path, share):
    whole, part = tmp_path / "whole.dump", tmp_path / "part.dump"
    filled("backup", str(whole))
    content = whole.read_bytes()
    part.write_bytes(content[: int(len(content) * share)])
    before = keys(filled)
    sentence = filled("restore", "--force", str(part)).complains(code=1)
    assert f"changed nothing: the file {part} ends in the middle" in sentence
    assert keys(filled) == before


def fill_with_ballast(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE ballast AS SELECT md5(number::text) FROM generate_series(1, %s) AS number", (BALLAST_ROWS,)
        )


def wait_for_psql(connection: psycopg.Connection, *, count: int, waiting: bool) -> None:
    deadline = time.monotonic() + SETTLED_SECONDS_MAX
    sessions = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'psql' AND (wait_event_type = 'Lock' OR NOT %s)
    """
    while connection.execute(sessions, (waiting,)).fetchone() != (count,):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_restore_that_is_killed_in_the_middle_changes_nothing(filled, database_url, tmp_path):
    file = tmp_path / "today.dump"
    fill_with_ballast(database_url)
    assert filled("backup", str(file)).code == 0
    filled("organization", "create", "Later")
    with (
        psycopg.connect(database_url) as watching,
        psycopg.connect(database_url) as standing_in_the_way,
    ):
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
    names = [each["name"] for each in filled("organization", "list", "--json").data]
    assert sorted(names) == ["Later", "Shop"]


def test_a_database_that_refuses_the_restore_ends_it_at_once(filled, database_url, tmp_path):
    file = tmp_path / "today.dump"
    fill_with_ballast(database_url)
    assert filled("backup", str(file)).code == 0
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = psycopg.sql.Identifier(connection.info.dbname)
        connection.execute(psycopg.sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
    assert "read-only transaction" in filled("restore", "--force", str(file)).complains(code=1)


def test_nothing_is_restored_beneath_a_server_or_a_worker(filled, database_url, tmp_path, monkeypatch):
    file = tmp_path / "today.dump"
    assert filled("backup", str(file)).code == 0
    for arguments in (("worker",), ("serve", "--port", "0", "--no-worker")):
        # Another data folder, as on another node.
        using = fork_server().start(
            "tests.support.cli",
            *arguments,
            environment=environment(DATABASE_URL=database_url, REGULARS_DATA_DIR=str(tmp_path / arguments[0])),
            log=tmp_path / f"{arguments[0]}.log",
            folder=tmp_path,
        )
        try:
            wait_for_users(database_url, count=1)
            with monkeypatch.context() as limits:
                limits.setattr(in_use, "RESTORE_WAIT", "100ms")
                assert "stop all of them" in filled("restore", "--force", str(file)).complains(code=1)
        finally:
            using.send_signal(signal.SIGTERM)
            assert using.wait(SETTLED_SECONDS_MAX) == 0
    assert filled("restore", "--force", str(file)).code == 0


def wait_for_users(database_url: str, *, count: int) -> None:
    deadline = time.monotonic() + SETTLED_SECONDS_MAX
    held = """
        SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
        WHERE datname = current_database() AND locktype = 'advisory' AND mode = 'ShareLock' AND granted
    """
    with psycopg.connect(database_url, autocommit=True) as connection:
        while connection.execute(held).fetchone() != (count,):
            assert time.monotonic() < deadline
            time.sleep(0.05)


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
    filled, database_url, command, empty_database_url, tmp_path
):
    pretend_to_be_a_cluster(database_url)
    file = str(tmp_path / "cluster.dump")
    assert filled("backup", file).code == 0
    sentence = filled("restore", file, "--force").complains(code=1)
    assert "cluster" in sentence
    assert "into an empty database" in sentence
    restored = command("restore", file, DATABASE_URL=empty_database_url)
    assert restored.code == 0, restored.err


def test_a_file_that_is_no_backup_is_refused(filled, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    filled("restore", "--force", str(tmp_path / "notes.txt")).complains(code=1)
    filled("restore", str(tmp_path / "missing.dump")).complains(code=2)


def test_an_existing_file_is_replaced_only_with_force(filled, tmp_path):
    file = tmp_path / "today.dump"
    file.write_text("precious")
    filled("backup", str(file)).complains(code=2)
    assert file.read_text() == "precious"
    assert filled("backup", "--force", str(file)).code == 0
    assert file.read_bytes().startswith(b"PGDMP")


def test_a_backup_that_fails_leaves_no_file(command, tmp_path):
    folder = tmp_path / "backups"
    folder.mkdir()
    command("backup", str(folder / "x.dump"), DATABASE_URL="postgresql://u@127.0.0.1:1/x").complains(code=3)
    assert list(folder.iterdir()) == []
