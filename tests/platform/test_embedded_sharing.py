import os
import signal
from contextlib import ExitStack

import psycopg
import pytest
from tests.support.embedded_command import Command, postmaster_pid

from regulars.postgres import embedded


def ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_a_second_command_shares_the_database_and_leaves_it_running(filled_data_dir):
    with Command(filled_data_dir) as server, Command(filled_data_dir) as visitor:
        url = server.url()
        first = postmaster_pid(filled_data_dir)
        assert visitor.url() == url
        visitor.finish()
        assert postmaster_pid(filled_data_dir) == first
        assert ask(url, "SELECT 1") == 1


def test_the_command_that_started_it_may_leave_first(filled_data_dir):
    with Command(filled_data_dir) as starter:
        url = starter.url()
        with Command(filled_data_dir) as other:
            other.url()
            starter.finish()
            assert ask(url, "SELECT 1") == 1
            other.finish()
    assert not (filled_data_dir / "cluster" / "postmaster.pid").exists()


def test_commands_that_start_together_get_one_database(data_dir):
    with ExitStack() as stack:
        commands = [stack.enter_context(Command(data_dir)) for _ in range(4)]
        [url] = {command.url() for command in commands}
        assert ask(url, "SELECT count(*) FROM pg_database WHERE datname = 'regulars'") == 1
        for command in commands:
            command.finish()
    # The last one has stopped it.
    assert not (data_dir / "cluster" / "postmaster.pid").exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_after_the_command_was_killed_the_next_one_finds_the_same_database_and_stops_it(filled_data_dir):
    with Command(filled_data_dir) as killed:
        killed.url()
        pid = postmaster_pid(filled_data_dir)
        killed.kill()
    with Command(filled_data_dir) as command:
        command.url()
        assert postmaster_pid(filled_data_dir) == pid
        command.finish()
    assert not (filled_data_dir / "cluster" / "postmaster.pid").exists()


def test_after_everything_was_killed_the_data_is_there(filled_data_dir):
    with Command(filled_data_dir) as killed:
        url = killed.url()
        execute(url, "CREATE TABLE stored AS SELECT 42 AS answer")
        os.kill(postmaster_pid(filled_data_dir), signal.SIGKILL)
        killed.kill()
    assert (filled_data_dir / "cluster" / "postmaster.pid").exists()
    with Command(filled_data_dir) as command:
        assert ask(command.url(), "SELECT answer FROM stored") == 42


def test_a_stale_note_with_the_number_of_another_process_does_not_stop_the_start(filled_data_dir, copy_filled_folder):
    other_data_dir = filled_data_dir.parent / "other"
    copy_filled_folder(other_data_dir)
    with Command(filled_data_dir) as killed:
        killed.url()
        pid = postmaster_pid(filled_data_dir)
        os.kill(pid, signal.SIGKILL)
        killed.kill()
    note = filled_data_dir / "cluster" / "postmaster.pid"
    with Command(other_data_dir) as other:
        other.url()
        other_pid = postmaster_pid(other_data_dir)
        note.write_text(note.read_text().replace(str(pid), str(other_pid), 1))
        with Command(filled_data_dir) as command:
            assert ask(command.url(), "SELECT 1") == 1
            assert postmaster_pid(filled_data_dir) != other_pid
            command.finish()
        other.finish()


def test_an_initdb_that_was_killed_is_done_again(data_dir):
    data_dir.mkdir(mode=0o700)
    (data_dir / "cluster.unfinished").mkdir()
    (data_dir / "cluster.unfinished" / "PG_VERSION").write_text("18\n")
    (data_dir / "start.lock").touch()
    with Command(data_dir) as command:
        assert ask(command.url(), "SELECT 1") == 1


def test_one_process_may_ask_twice_and_release_once(filled_data_dir):
    first = embedded.ensure_running(filled_data_dir, throwaway=True)
    assert embedded.ensure_running(filled_data_dir, throwaway=True) == first
    embedded.release(filled_data_dir)
    assert not (filled_data_dir / "cluster" / "postmaster.pid").exists()
    embedded.release(filled_data_dir)
