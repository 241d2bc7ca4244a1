"""What an older release does on a database that a newer one has migrated."""

import httpx
import psycopg
import pytest
from tests.cli.conftest import environment
from tests.support.client import get_url
from tests.support.fork_server import fork_server
from tests.support.server import Server, running_server
from tests.support.waiting import wait_until_logged

from regulars.kit import migrate
from regulars.kit.releases import THIS_RELEASE, Limits, ProcessRole

SECONDS_MAX = 60


@pytest.fixture
def newer_release(database_url, tmp_path):
    """Migrates the database as a release does whose newest migration is 9001, with the limits that it names."""

    def migrated(*, server: int, worker: int) -> None:
        limits = f"-- oldest server: {server:04}\n-- oldest worker: {worker:04}\n-- outside a transaction\n"
        folder = tmp_path / "newer"
        folder.mkdir()
        (folder / "9001_newer.sql").write_text(f"{limits}SELECT 1;\n")
        assert migrate.migrate(database_url, folder=folder) == ["9001_newer"]

    return migrated


def test_no_process_starts_that_the_database_excludes(regulars, newer_release):
    newer_release(server=9001, worker=9001)
    for arguments in (
        ["serve", "--port", "0"],
        ["serve", "--port", "0", "--no-worker"],
        ["migrate"],
        ["organization", "list"],
    ):
        sentence = regulars(*arguments).complains(code=3)
        assert f"its servers need migration 9001, and this release ends at {THIS_RELEASE:04}" in sentence
        assert "start the newer release, or restore the backup from before the upgrade" in sentence
    assert "its workers need migration 9001" in regulars("worker").complains(code=3)
    found = {one["name"]: one for one in regulars("doctor", "--json").data}
    assert not found["migrations"]["ok"]
    assert "need migration 9001" in found["migrations"]["found"]


def test_where_only_workers_are_excluded_the_advice_is_to_serve_without_a_worker(regulars, newer_release):
    newer_release(server=THIS_RELEASE, worker=9001)
    for arguments in (["serve", "--port", "0"], ["worker"]):
        sentence = regulars(*arguments).complains(code=3)
        assert "its workers need migration 9001" in sentence
        assert "`regulars serve --no-worker` may still run" in sentence
    assert regulars("organization", "list").code == 0
    assert regulars("migrate").code == 0


def ready(server: Server) -> httpx.Response:
    return get_url(f"{server.url}/readyz", timeout=SECONDS_MAX)


def test_an_excluded_server_is_no_longer_ready(database_url, newer_release):
    with running_server(database_url) as server:
        assert ready(server).status_code == 200
        newer_release(server=9001, worker=THIS_RELEASE)
        shown = ready(server)
    assert shown.status_code == 503
    assert "its servers need migration 9001" in shown.json()["reason"]


def test_a_worker_that_is_excluded_while_it_runs_ends(database_url, data_dir, newer_release):
    log = data_dir.parent / "worker.log"
    given = environment(REGULARS_DATA_DIR=str(data_dir), DATABASE_URL=database_url)
    with psycopg.connect(database_url, application_name="regulars", autocommit=True) as hidden:
        hidden.execute("SET track_activities = off")
        worker = fork_server().start("tests.support.cli", "worker", environment=given, log=log, folder=data_dir.parent)
        wait_until_logged(log, "worker.started")
    # A worker builds blocks of sales below the same horizon, so it warns as `serve` does.
    assert "changes.cannot_be_listed" in log.read_text()
    newer_release(server=THIS_RELEASE, worker=9001)
    assert worker.wait(SECONDS_MAX) == 3
    assert "its workers need migration 9001" in log.read_text()


def test_a_database_from_before_the_limits_takes_any_release(database_url, regulars):
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE migrations DROP COLUMN oldest_server, DROP COLUMN oldest_worker")
    assert regulars("organization", "list").code == 0
    assert Limits(None, None).refusal(ProcessRole.WORKER, release=1) is None
