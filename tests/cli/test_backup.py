import stat

import psycopg
import pytest


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


def test_a_schema_that_nobody_used_counts_as_empty(filled, regulars, command, empty_database_url, tmp_path):
    file = tmp_path / "today.dump"
    filled("backup", str(file))
    command("migrate", DATABASE_URL=empty_database_url)
    assert command("restore", str(file), DATABASE_URL=empty_database_url).code == 0


def test_tables_of_somebody_else_are_not_dropped_without_force(filled, command, empty_database_url, tmp_path):
    file = tmp_path / "today.dump"
    filled("backup", str(file))
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE precious (id int)")
    command("restore", str(file), DATABASE_URL=empty_database_url).complains(code=1)
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT to_regclass('precious') IS NOT NULL").fetchone() == (True,)


@pytest.mark.parametrize("kept", [0.25, 0.5, 0.9])
def test_a_damaged_file_changes_nothing(filled, tmp_path, kept):
    whole, part = tmp_path / "whole.dump", tmp_path / "part.dump"
    filled("backup", str(whole))
    content = whole.read_bytes()
    part.write_bytes(content[: int(len(content) * kept)])
    before = keys(filled)
    assert "changed nothing" in filled("restore", "--force", str(part)).complains(code=1)
    assert keys(filled) == before


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
