"""Backup and restore of a database that is reached over TLS, which the programs in the wheel cannot use."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.support.database import is_reachable, new_data_folder
from tests.support.tls import make_certificates
from tests.support.waiting import wait_until

from regulars.postgres import account, programs, wheel
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


def test_programs_that_are_too_old_or_lack_tls_are_named_with_the_package_to_install(monkeypatch):
    monkeypatch.setattr(programs, "_system_folders", list)
    bundled = wheel.locate()
    too_old = rf"are of version {bundled.major}; install .* of version 99 .* postgresql-client-99 "
    with pytest.raises(ProgramsError, match=too_old):
        programs.find_programs(990_000, over_tls=False)
    with pytest.raises(ProgramsError, match=r"cannot connect over TLS; install .* postgresql-client-15 "):
        programs.find_programs(150_000, over_tls=True)
    assert programs.find_programs(150_000, over_tls=False) == bundled.bin


def test_over_tls_the_programs_on_the_path_are_taken_if_they_are_new_enough(monkeypatch, tmp_path):
    for version in (15, 17):
        folder = tmp_path / str(version)
        folder.mkdir()
        for program in ("pg_dump", "pg_restore", "psql"):
            (folder / program).write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {version}.4'\n")
            (folder / program).chmod(0o700)
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ((tmp_path, "17"),))
    monkeypatch.setenv("PATH", f"{tmp_path / '15'}:{os.environ['PATH']}")
    assert programs.find_programs(150_008, over_tls=True) == tmp_path / "15"
    assert programs.find_programs(160_000, over_tls=True) == tmp_path / "17"


@needs_a_server_with_tls
def test_the_machine_s_own_programs_are_taken_for_a_server_that_ours_are_too_old_for(monkeypatch):
    monkeypatch.setattr(wheel, "locate", lambda: wheel.Wheel("0", 14, Path("/nowhere"), Path("/nowhere")))
    assert programs.find_major_version(programs.find_programs(150_000, over_tls=False)) >= 15


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
def test_a_server_that_wants_tls_and_a_password_is_backed_up_and_restored(regulars, certificates, tmp_path):
    """With the certificate named in the address, and named in the environment, where the driver looks too."""
    with server_with_tls(certificates) as server:
        with psycopg.connect(server, autocommit=True) as connection:
            for name in ("source", "target"):
                connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))
        root = certificates / "root.crt"
        source, target = (f"{server.rsplit('/', 1)[0]}/{name}" for name in ("source", "target"))
        trusted = f"{source}?sslmode=verify-full&sslrootcert={root}&channel_binding=require"
        migrated = regulars("migrate", DATABASE_URL=trusted)
        assert migrated.code == 0, migrated.err
        file = tmp_path / "today.dump"
        assert regulars("organization", "create", "Shop", DATABASE_URL=trusted).code == 0
        written = regulars("backup", str(file), DATABASE_URL=trusted)
        assert written.code == 0, written.err
        by_environment = {"DATABASE_URL": target, "PGSSLMODE": "verify-full", "PGSSLROOTCERT": str(root)}
        restored = regulars("restore", str(file), **by_environment)
        assert restored.code == 0, restored.err
        assert [each["name"] for each in regulars("organization", "list", "--json", **by_environment).data] == ["Shop"]
