"""SIGTERM during a migration ends the command and the PostgreSQL that it started."""

import json
import signal

import psycopg
from tests.cli.conftest import environment
from tests.support.fork_server import fork_server
from tests.support.waiting import wait_until

from regulars.postgres import embedded

SECONDS_MAX = 60
LAST = "0077_numbers_of_customers"
# Every change of the schema takes a minute.
SLOW = """
CREATE FUNCTION wait_a_minute() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); END';
CREATE EVENT TRIGGER slow ON ddl_command_start EXECUTE FUNCTION wait_a_minute();
"""


def is_migrating(url: str) -> bool:
    try:
        with psycopg.connect(url) as connection:
            asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            return connection.execute(asked).fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def test_sigterm_during_a_migration_ends_the_command_and_its_postgresql(migrated_data_dir):
    url = embedded.ensure_running(migrated_data_dir, throwaway=True)
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM migrations WHERE name = %s", (LAST,))
        connection.execute(SLOW)
    embedded.release(migrated_data_dir)
    for arguments in (["serve", "--port", "0"], ["migrate"]):
        log = migrated_data_dir.parent / f"{arguments[0]}.log"
        given = environment(REGULARS_DATA_DIR=str(migrated_data_dir))
        started = fork_server().start(
            "tests.support.cli", *arguments, environment=given, log=log, folder=migrated_data_dir.parent
        )
        wait_until(lambda: is_migrating(url), show=log.read_text)
        started.send_signal(signal.SIGTERM)
        code = started.wait(SECONDS_MAX)
        assert not (migrated_data_dir / "cluster" / "postmaster.pid").exists()
        assert code == 143
        assert "Traceback" not in log.read_text()
        last = log.read_text().strip().splitlines()[-1]
        # The server logs as JSON, and the command speaks to a person.
        assert (
            json.loads(last)["reason"] if arguments[0] == "serve" else last.removeprefix("regulars: ")
        ) == "Terminated."
