"""Tests that the server reports a read-only database or a full disk, and resumes writing by itself."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.cli.conftest import Command, command
from tests.crash.conftest import Durable
from tests.crash.disks import CannotMountError, database_on, fill, small_disk
from tests.support import samples
from tests.support.embedded_command import postmaster_pid
from tests.support.raw import Answer, send
from tests.support.server import Server, running_server
from tests.support.tenant import new_tenant
from tests.support.waiting import wait_until, wait_until_gone

from regulars.postgres import embedded

__all__ = ["command"]


class Till:
    def __init__(self, server: Server, url: str) -> None:
        self._server = server
        self._headers = [(b"x-api-key", new_tenant(url).key.encode()), (b"content-type", b"application/json")]
        assert self.post("/v1/stores", samples.store(external_id="S1")).status == 201

    def post(self, path: str, body: object) -> Answer:
        return send(self._server.address, "POST", path, headers=self._headers, body=samples.json_bytes(body))

    def sell(self, **changes: object) -> Answer:
        line = samples.line()
        line["product"] = samples.without(line["product"], "properties")
        return self.post("/v1/sales-events", samples.sale("S1", **{"line_items": [line], **changes}))

    def upsert(self) -> Answer:
        return self.post("/v1/profiles", samples.profile())

    def readiness(self) -> Answer:
        return send(self._server.address, "GET", "/readyz")


def test_a_failover_to_a_standby_is_reported_and_writing_resumes_when_it_is_promoted(
    durable: Durable, command: Command
) -> None:
    with running_server(durable.url) as server:
        till = Till(server, durable.url)
        assert till.sell().status == 201
        _restart_as_standby(durable.data_dir)
        wait_until(lambda: b"read-only" in till.sell().body)
        for refused in (till.sell(), till.upsert()):
            assert refused.status == 503
            assert b"The database is read-only at the moment" in refused.body
        assert till.readiness().status == 503
        assert b"read-only" in till.readiness().body
        found = {finding["name"]: finding for finding in command("doctor", "--json", DATABASE_URL=durable.url).data}
        assert found["writes"]["found"] == "The database is read-only."
        assert not found["writes"]["ok"]
        with psycopg.connect(durable.url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        wait_until(lambda: (till.sell().status, till.upsert().status) == (201, 201))
        wait_until(lambda: till.readiness().status == 200)


def _restart_as_standby(data_dir: Path) -> None:
    cluster = data_dir / "cluster"
    stopped = postmaster_pid(data_dir)
    os.kill(stopped, signal.SIGINT)
    wait_until_gone(stopped)
    standby = cluster / "standby.signal"
    standby.touch()
    owner = cluster.stat()
    os.chown(standby, owner.st_uid, owner.st_gid)
    embedded.ensure_running(data_dir)


def test_a_full_disk_is_reported_and_writing_resumes_when_there_is_room(durable: Durable, disk: Path) -> None:
    with database_on(disk, durable.url) as url, running_server(url) as server:
        till = Till(server, url)
        assert till.sell().status == 201
        filler = fill(disk)
        notes = {"note": "x" * 15_000}
        wait_until(lambda: b"disk is full" in till.sell(metadata=notes).body)
        assert till.sell(metadata=notes).status == 503
        assert till.readiness().status == 503
        assert b"The database's disk is full" in till.readiness().body
        filler.unlink()
        # No client writes, so the server must find out by itself.
        wait_until(lambda: till.readiness().status == 200)
        assert till.sell(metadata=notes).status == 201


@pytest.fixture
def disk() -> Iterator[Path]:
    try:
        with small_disk() as folder:
            yield folder
    except CannotMountError as error:
        pytest.skip(str(error))
