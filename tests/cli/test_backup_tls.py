"""Backup and restore of a database that is reached over TLS, which the programs in the wheel do not speak."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import psycopg
import pytest
from tests.support.database import is_reachable, new_data_folder
from tests.support.tls import make_certificates, tls_proxy
from tests.support.waiting import wait_until

from regulars.postgres import account, programs, relay, wheel
from regulars.postgres.errors import ProgramsError

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin/postgres"), default=None, key=lambda path: int(path.parts[-3]))
needs_a_server_with_tls = pytest.mark.skipif(
    PROGRAMS is None, reason="needs a PostgreSQL that was built with TLS: install Debian's package postgresql"
)
SECONDS_MAX = 60


@pytest.fixture
def certificates(tmp_path) -> Path:
    folder = tmp_path / "certificates"
    folder.mkdir()
    return make_certificates(folder)


def shops(run, url):
    return [each["name"] for each in run("organization", "list", "--json", DATABASE_URL=url).data]


def carry_over(regulars, source: str, target: str, file: Path) -> None:
    """Back up one database and restore it into another."""
    assert regulars("organization", "create", "Shop", DATABASE_URL=source).code == 0
    written = regulars("backup", str(file), DATABASE_URL=source)
    assert written.code == 0, written.err
    restored = regulars("restore", str(file), DATABASE_URL=target)
    assert restored.code == 0, restored.err
    assert shops(regulars, target) == ["Shop"]


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_a_database_behind_tls_is_backed_up_and_restored(
    regulars, database_url, empty_database_url, certificates, tmp_path, *, mode
):
    trusted = f"?sslmode={mode}&sslrootcert={certificates / 'root.crt'}"
    with tls_proxy(database_url, certificates) as source, tls_proxy(empty_database_url, certificates) as target:
        carry_over(regulars, source + trusted, target + trusted, tmp_path / "today.dump")


def test_the_relay_refuses_a_server_that_another_root_has_signed(database_url, certificates, tmp_path):
    (tmp_path / "other").mkdir()
    stranger = make_certificates(tmp_path / "other") / "root.crt"
    with tls_proxy(database_url, certificates) as url:
        with psycopg.connect(f"{url}?sslmode=require") as connection:
            options = relay.effective_options(connection)
        options |= {"sslmode": "verify-full", "sslrootcert": str(stranger)}
        with pytest.raises(ProgramsError, match=r"over TLS: .*CERTIFICATE_VERIFY_FAILED"):
            call_through(
                relay.Relay(tmp_path / "socket", options, relay.make_tls_context(options)), tmp_path / "socket"
            )


def call_through(carried: relay.Relay, path: Path) -> None:
    with carried.running(), socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(SECONDS_MAX)
        caller.connect(str(path))
        assert caller.recv(1) == b""


def test_an_address_that_demands_what_a_relay_cannot_give_is_refused_in_one_sentence(database_url, certificates):
    with tls_proxy(database_url, certificates) as url, psycopg.connect(f"{url}?sslmode=require") as connection:
        options = {"channel_binding": "require", "sslmode": "require"}
        demanding = mock.patch.object(relay, "effective_options", return_value=options)
        with demanding, pytest.raises(ProgramsError, match="leave it out"), relay.opened(connection):
            pass


def test_a_server_newer_than_every_program_says_what_to_install(monkeypatch):
    monkeypatch.setattr(programs, "_system_folders", list)
    with pytest.raises(ProgramsError, match="install pg_dump, pg_restore and psql of version 99"):
        programs.find_programs(990_000)
    assert programs.find_programs(150_000) == wheel.locate().bin


@needs_a_server_with_tls
def test_the_machine_s_own_programs_are_taken_for_a_server_that_ours_are_too_old_for(monkeypatch):
    monkeypatch.setattr(wheel, "locate", lambda: wheel.Wheel("0", 14, Path("/nowhere"), Path("/nowhere")))
    assert programs.find_major_version(programs.find_programs(150_000)) >= 15


@contextlib.contextmanager
def server_with_tls(certificates: Path) -> Iterator[str]:
    """The machine's own PostgreSQL: TLS and a password, or no entry."""
    assert PROGRAMS is not None
    folder, owner, password = new_data_folder().parent, account.choose(), secrets.token_hex(8)
    cluster = folder / "cluster"
    cluster.mkdir(mode=0o700)
    (folder / "password").write_text(password)
    for path in (folder, cluster, folder / "password"):
        os.chown(path, owner.uid, owner.gid)
    initdb = [PROGRAMS.with_name("initdb"), f"--pgdata={cluster}", "--username=shop", "--auth=scram-sha-256"]
    made = account.run(
        owner, [*initdb, "--encoding=UTF8", "--no-sync", f"--pwfile={folder / 'password'}"], folder=folder
    )
    assert made.returncode == 0, made.stderr
    for name in ("server.crt", "server.key"):
        shutil.copy(certificates / name, cluster / name)
        os.chown(cluster / name, owner.uid, owner.gid)
    (cluster / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["-c", "ssl=on", "-c", "fsync=on", "-c", f"unix_socket_directories={folder}", "-p", str(port)]
    running = subprocess.Popen(
        [PROGRAMS, "-D", cluster, "-c", "listen_addresses=127.0.0.1", *options],
        user=owner.uid if owner.is_dedicated else None,
        group=owner.gid if owner.is_dedicated else None,
        extra_groups=[] if owner.is_dedicated else None,
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )
    url = f"postgresql://shop:{password}@127.0.0.1:{port}/postgres"
    try:
        wait_until(lambda: is_reachable(url))
        yield url
    finally:
        running.terminate()
        running.wait(SECONDS_MAX)
        shutil.rmtree(folder)


@needs_a_server_with_tls
def test_a_real_server_that_wants_tls_and_a_password(regulars, certificates, tmp_path):
    with server_with_tls(certificates) as server:
        with psycopg.connect(server, autocommit=True) as connection:
            for name in ("source", "target"):
                connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))
        trusted = f"?sslmode=verify-full&sslrootcert={certificates / 'root.crt'}"
        source, target = (f"{server.rsplit('/', 1)[0]}/{name}{trusted}" for name in ("source", "target"))
        migrated = regulars("migrate", DATABASE_URL=source)
        assert migrated.code == 0, migrated.err
        carry_over(regulars, source, target, tmp_path / "today.dump")
