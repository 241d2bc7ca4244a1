"""What a power cut may leave behind: programs without content, an unreadable pid file, a half-made folder."""

import os
import signal
from pathlib import Path

import psycopg
import pytest
from tests.support.embedded_command import Command, postmaster_pid

from regulars.kit import disk
from regulars.postgres import embedded, wheel
from regulars.postgres.errors import EmbeddedDatabaseError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="programs are copied as root only; run the suite as root")


def answers(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def spoil_by_emptying(program: Path) -> None:
    os.truncate(program, 0)


def spoil_by_zeros(program: Path) -> None:
    program.write_bytes(bytes(program.stat().st_size))


def spoil_by_removing(program: Path) -> None:
    program.unlink()


@as_root
def test_a_copy_of_the_programs_that_lost_its_content_is_made_again(filled_data_dir):
    programs = embedded.binaries(filled_data_dir)
    faults = (("postgres", spoil_by_emptying), ("pg_ctl", spoil_by_zeros), ("postgres", spoil_by_removing))
    for program, spoil in faults:
        copied = programs / program
        spoil(copied)
        assert answers(embedded.ensure_running(filled_data_dir, throwaway=True)), spoil
        embedded.release(filled_data_dir)
        assert copied.read_bytes() == (wheel.locate().bin / program).read_bytes(), spoil


@as_root
def test_programs_that_are_running_are_left_alone(filled_data_dir):
    with Command(filled_data_dir) as running:
        running.url()
        copied = embedded.binaries(filled_data_dir) / "pgbench"
        spoil_by_emptying(copied)
        embedded.ensure_running(filled_data_dir)
        assert copied.stat().st_size == 0
        embedded.release(filled_data_dir)
        running.finish()


@as_root
def test_the_copy_is_on_the_disk_before_it_gets_its_name(data_dir, monkeypatch):
    synced: list[tuple[str, bool]] = []

    def sync(path: Path) -> None:
        home = data_dir / "programs" / wheel.locate().version
        synced.append((str(path), home.exists()))

    monkeypatch.setattr(disk, "sync", sync)
    programs = embedded.binaries(data_dir)
    before = {Path(path).name for path, has_name in synced if not has_name}
    assert {path.name for path in programs.iterdir()} <= before
    assert {"bin", "lib", "share"} <= before
    assert synced[-1] == (str(data_dir / "programs"), True)


def test_the_new_cluster_s_name_is_on_the_disk(data_dir, monkeypatch):
    synced: list[tuple[Path, bool]] = []
    monkeypatch.setattr(disk, "sync", lambda path: synced.append((path, (data_dir / "cluster").exists())))
    with embedded.running(data_dir):
        assert (data_dir, True) in synced
        assert (data_dir.parent, False) in synced


def test_a_program_that_cannot_be_run_ends_in_one_sentence(data_dir, tmp_path, monkeypatch):
    broken = tmp_path / "pginstall18"
    (broken / "bin").mkdir(parents=True)
    located = wheel.locate()
    for program in located.bin.iterdir():
        (broken / "bin" / program.name).touch(mode=0o755)
    monkeypatch.setattr(wheel, "copied_bin", lambda *_: broken / "bin")
    monkeypatch.setattr(
        wheel,
        "locate",
        lambda: wheel.Wheel(version="0", major=located.major, package=located.package, install=broken),
    )
    monkeypatch.setattr(wheel, "copy_into", lambda *_: None)
    with pytest.raises(EmbeddedDatabaseError, match=r"initdb cannot be run \(.*\); install .* again\.$"):
        embedded.ensure_running(data_dir, throwaway=True)


def test_an_unreadable_pid_file_is_explained_and_survived(filled_data_dir, running_url, capfd, caplog):
    with psycopg.connect(running_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    for left in (b"", bytes(64), b"\xff\xfe garbage\nof\nlines\n", b"\n"):
        os.kill(postmaster_pid(filled_data_dir), signal.SIGKILL)
        (filled_data_dir / "cluster" / "postmaster.pid").write_bytes(left)
        with psycopg.connect(embedded.ensure_running(filled_data_dir, throwaway=True)) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,), left
        assert "postmaster.note_unreadable" in caplog.text + "".join(capfd.readouterr()), left
        caplog.clear()
