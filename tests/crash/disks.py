"""Mounts a small disk that a test can fill, and creates a database on it. Needs root."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
from psycopg import sql
from tests.support.database import with_database


class CannotMountError(Exception):
    """The message says why."""


@contextmanager
def small_disk(*, size: str = "64m") -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="regulars-disk-"))
    folder.chmod(0o755)
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
        )
        why = mounted.stderr.decode().strip() if mounted.returncode else ""
    except FileNotFoundError as error:
        why = str(error)
    if why:
        folder.rmdir()
        raise CannotMountError(f"a small disk cannot be mounted here: {why}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


@contextmanager
def database_on(disk: Path, url: str) -> Iterator[str]:
    """Copies the unused database to the disk; the WAL of the cluster stays where it is."""
    files = disk / "files"
    files.mkdir(mode=0o700)
    name = f"small_{uuid4().hex[:8]}"
    admin = with_database(url, "postgres")
    with psycopg.connect(url, autocommit=True) as connection:
        [(cluster, origin)] = connection.execute("SELECT current_setting('data_directory'), current_database()")
    owner = Path(cluster).stat()
    os.chown(files, owner.st_uid, owner.st_gid)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(sql.Identifier(name), sql.Literal(str(files)))
        )
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} TABLESPACE {} STRATEGY FILE_COPY").format(
                sql.Identifier(name), sql.Identifier(origin), sql.Identifier(name)
            )
        )
    try:
        yield with_database(url, name)
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
            connection.execute(sql.SQL("DROP TABLESPACE {}").format(sql.Identifier(name)))


def fill(disk: Path) -> Path:
    """Fills the disk; returns the file whose removal makes room."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        while shutil.disk_usage(disk).free > 0:
            file.write(b"\0" * min(1 << 16, shutil.disk_usage(disk).free))
    return filler
