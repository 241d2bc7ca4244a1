import threading
import time
from datetime import datetime

import psycopg
import pytest
from tests.support.database import pretend_to_be_a_cluster

from regulars.kit import migrate
from regulars.kit.migrate import MigrationError


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {name for (name,) in rows}


def test_it_applies_each_file_once_in_order(empty_database_url, tmp_path):
    (tmp_path / "0002_second.sql").write_text("ALTER TABLE first ADD COLUMN b int;")
    (tmp_path / "0001_first.sql").write_text("CREATE TABLE first (a int);")
    assert migrate.pending(empty_database_url, folder=tmp_path) == ["0001_first", "0002_second"]
    assert migrate.migrate(empty_database_url, folder=tmp_path) == ["0001_first", "0002_second"]
    assert migrate.pending(empty_database_url, folder=tmp_path) == []
    assert migrate.migrate(empty_database_url, folder=tmp_path) == []


def test_it_works_with_no_files_at_all(empty_database_url, tmp_path):
    assert migrate.migrate(empty_database_url, folder=tmp_path) == []
    assert tables(empty_database_url) == {"migrations"}


def test_a_failing_file_leaves_nothing_and_says_its_name(empty_database_url, tmp_path):
    (tmp_path / "0001_good.sql").write_text("CREATE TABLE good (a int);")
    (tmp_path / "0002_bad.sql").write_text("CREATE TABLE half (a int); SELECT 1 / 0;")
    with pytest.raises(MigrationError, match="0002_bad failed and changed nothing: division by zero"):
        migrate.migrate(empty_database_url, folder=tmp_path)
    assert tables(empty_database_url) == {"migrations", "good"}
    assert migrate.pending(empty_database_url, folder=tmp_path) == ["0002_bad"]


def test_it_does_not_wait_long_for_a_locked_table(empty_database_url, tmp_path, monkeypatch):
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "100ms")
    (tmp_path / "0001_wide.sql").write_text("ALTER TABLE busy ADD COLUMN b int;")
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("CREATE TABLE busy (a int)")
        connection.commit()
        connection.execute("LOCK TABLE busy IN ACCESS SHARE MODE")
        with pytest.raises(MigrationError, match=r"0001_wide failed and changed nothing: canceling .* lock timeout"):
            migrate.migrate(empty_database_url, folder=tmp_path)


def test_nodes_that_start_together_apply_each_file_once(empty_database_url, tmp_path):
    for number in range(1, 4):
        (tmp_path / f"000{number}_step.sql").write_text(f"SELECT pg_sleep(0.05); CREATE TABLE step_{number} (a int);")
    barrier = threading.Barrier(4)
    applied: list[str] = []

    def node() -> None:
        barrier.wait()
        applied.extend(migrate.migrate(empty_database_url, folder=tmp_path))

    threads = [threading.Thread(target=node) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(applied) == ["0001_step", "0002_step", "0003_step"]


def test_two_files_with_one_number_are_refused(empty_database_url, tmp_path):
    (tmp_path / "0001_one.sql").write_text("SELECT 1;")
    (tmp_path / "0001_other.sql").write_text("SELECT 1;")
    with pytest.raises(MigrationError, match="same number"):
        migrate.migrate(empty_database_url, folder=tmp_path)


def test_an_unreachable_server_gives_one_sentence(tmp_path):
    with pytest.raises(MigrationError, match="could not be migrated") as raised:
        migrate.migrate(f"postgresql://nobody@/none?host={tmp_path}")
    assert "\n" not in str(raised.value)


def test_the_template_has_every_migration(database_url):
    assert migrate.pending(database_url) == []


OUTSIDE = """\
-- outside a transaction
DROP INDEX CONCURRENTLY IF EXISTS wide_by_a;
CREATE INDEX CONCURRENTLY wide_by_a ON wide (a);
"""


def test_an_index_is_built_beside_a_writer_and_nodes_that_start_together(empty_database_url, tmp_path):
    (tmp_path / "0001_wide.sql").write_text("CREATE TABLE wide (a int);")
    (tmp_path / "0002_index.sql").write_text(OUTSIDE)
    barrier = threading.Barrier(3)
    applied: list[str] = []

    def node() -> None:
        barrier.wait()
        applied.extend(migrate.migrate(empty_database_url, folder=tmp_path))

    threads = [threading.Thread(target=node) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(applied) == ["0001_wide", "0002_index"]
    with psycopg.connect(empty_database_url) as connection:
        rows = connection.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = 'wide_by_a'::regclass").fetchall()
    assert rows == [(True,)]


def until_two_nodes_have_tried(url: str, *, times: int) -> None:
    """Until two nodes that wait for the third have each looked so often for the lock."""
    looks: dict[int, set[datetime]] = {}
    deadline = time.monotonic() + 90
    with psycopg.connect(url, autocommit=True) as connection:
        while sum(len(moments) >= times for moments in looks.values()) < 2:
            assert time.monotonic() < deadline, looks
            rows = connection.execute(
                "SELECT pid, query_start FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'regulars'"
            ).fetchall()
            for pid, started in rows:
                looks.setdefault(pid, set()).add(started)


@pytest.mark.parametrize("is_upgraded", [False, True])
def test_nodes_that_wait_hold_up_no_build_that_a_reader_delays(empty_database_url, tmp_path, monkeypatch, is_upgraded):
    """A driver prepares a statement after five executions, and a prepared one keeps its snapshot."""
    monkeypatch.setattr(migrate, "OTHER_NODE_POLL_S", 0.02)
    (tmp_path / "0001_wide.sql").write_text("CREATE TABLE wide (a int);")
    if is_upgraded:
        migrate.migrate(empty_database_url, folder=tmp_path)
    (tmp_path / "0002_index.sql").write_text(OUTSIDE)
    ended: list[list[str]] = []

    def node() -> None:
        ended.append(migrate.migrate(empty_database_url, folder=tmp_path))

    with psycopg.connect(empty_database_url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        threads = [threading.Thread(target=node, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        until_two_nodes_have_tried(empty_database_url, times=8)
    for thread in threads:
        thread.join(20)
    assert len(ended) == 3
    applied = sorted(name for names in ended for name in names)
    assert applied == (["0002_index"] if is_upgraded else ["0001_wide", "0002_index"])


def test_a_build_that_broke_off_is_begun_anew(empty_database_url, tmp_path):
    (tmp_path / "0001_wide.sql").write_text("CREATE TABLE wide (a int); INSERT INTO wide VALUES (1), (1);")
    broken = OUTSIDE.replace("CREATE INDEX", "CREATE UNIQUE INDEX")
    (tmp_path / "0002_index.sql").write_text(broken)
    with pytest.raises(MigrationError, match="0002_index failed and is to be run again: could not create unique"):
        migrate.migrate(empty_database_url, folder=tmp_path)
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("DELETE FROM wide")
    assert migrate.migrate(empty_database_url, folder=tmp_path) == ["0002_index"]
    with psycopg.connect(empty_database_url) as connection:
        rows = connection.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = 'wide_by_a'::regclass").fetchall()
    assert rows == [(True,)]


@pytest.mark.parametrize(("is_cluster", "mode"), [(True, "sequential"), (False, None)])
def test_on_a_cluster_a_file_changes_one_part_of_a_table_at_a_time(empty_database_url, tmp_path, is_cluster, mode):
    if is_cluster:
        pretend_to_be_a_cluster(empty_database_url)
    (tmp_path / "0001_ask.sql").write_text(
        "CREATE TABLE asked AS SELECT nullif(current_setting('citus.multi_shard_modify_mode', true), '') AS mode;"
    )
    migrate.migrate(empty_database_url, folder=tmp_path)
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT mode FROM asked").fetchall() == [(mode,)]
