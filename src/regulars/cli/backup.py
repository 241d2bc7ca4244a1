"""`regulars backup` and `regulars restore`: the whole database as one file in PostgreSQL's own format."""

import contextlib
import dataclasses
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Final

import typer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from regulars.cli import database, restoring, unlock
from regulars.cli.output import CommandError, Exit, err
from regulars.kit import migrate, settings, vault
from regulars.kit.cluster import IS_CLUSTER
from regulars.kit.log import scrub
from regulars.postgres import programs, relay
from regulars.processes import in_use, serve_lock

HEADER_LINES_MAX: Final = 60
# Programs of version 17 and newer open every restore with this, and older servers do not know it.
TRANSACTION_TIMEOUT_SINCE: Final = 170_000
TRANSACTION_TIMEOUT_LINE: Final = b"SET transaction_timeout = 0;\n"
EXCLUDE_EXTENSION_SINCE: Final = 17
# A restore, and the emptying before it, happens whole or not at all. The transaction is ours and not psql's own: psql
# takes the end of its input for the end of the backup and commits, even when it is we who were killed in the middle.
BEGIN: Final = b"BEGIN;\n"
COMMIT: Final = b"COMMIT;\n"
# What pg_restore says of a file that was cut off.
CUT_OFF: Final = (b"end of file", b"file is too short")
EMPTY_THE_DATABASE: Final = b"DROP SCHEMA public CASCADE;\nCREATE SCHEMA public;\n"

File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup file.", show_default=False)]


def backup(
    file: File, force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False
) -> None:
    if file.exists() and not force:
        raise CommandError(f"{file} exists already; choose another name or add --force.", code=Exit.USAGE)
    if not file.absolute().parent.is_dir():
        raise CommandError(f"The folder {file.absolute().parent} does not exist.", code=Exit.USAGE)
    loaded = settings.load()
    with database.opened(loaded) as url, _unfinished(file) as unfinished:
        with _reached(url) as way:
            arguments = ["--format=custom", "--no-owner", "--no-privileges", *_without_cluster(way.programs)]
            done = subprocess.run(  # noqa: S603  # our own program and arguments, no shell
                [way.programs / "pg_dump", *arguments, f"--file={unfinished}", f"--dbname={way.address}"],
                env=way.environment,
                capture_output=True,
                check=False,
            )
        if done.returncode != 0:
            raise CommandError(f"The backup failed: {_one_line(done.stderr)}")
        size = unfinished.stat().st_size
        unfinished.replace(file)
    err.print(f"Wrote {file} ({size:,} bytes).", markup=False)
    # The commonest way to lose every second factor: a backup without the key that opens it.
    place = str(loaded.data_dir / vault.KEY_FILE_NAME) if loaded.is_embedded else "REGULARS_SECRET_KEY"
    if loaded.secret_key is not None:
        place = "REGULARS_SECRET_KEY"
    err.print(f"The key of its secrets is not in it: keep a copy of {place} elsewhere.", markup=False)


def restore(
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Replace what the database holds.")] = False,
    erasures: Annotated[
        list[Path] | None,
        typer.Option(
            "--erasures", metavar="FILE", help="Log of erasures of another node or a lost one; may be repeated."
        ),
    ] = None,
    revoke_keys: Annotated[
        bool, typer.Option("--revoke-keys", help="Revoke every API key that was live in the backup.")
    ] = False,
) -> None:
    for path in (file, *(erasures or ())):
        if not path.is_file():
            raise CommandError(f"The file {path} does not exist.", code=Exit.USAGE)
    loaded = settings.load()
    with (
        serve_lock.held(loaded),
        database.opened(loaded, may_create=True) as url,
        database.connected(url) as connection,
        in_use.alone(connection),
    ):
        replaces = _holds_tables(url)
        if replaces and connection.execute(IS_CLUSTER).fetchone() == (True,):
            raise CommandError(
                "The database is a cluster (Citus), whose tables a restore cannot replace; restore into an empty"
                " database and name that one in DATABASE_URL."
            )
        if replaces and _holds_organizations(url) and not force:
            raise CommandError("The database holds data; add --force to replace all of it with the backup.")
        known = restoring.gather(loaded, connection, erasures or (), revokes_all_keys=revoke_keys)
        _replay(file, url, replaces=replaces, at_the_end=restoring.statements(known))
        held = restoring.end_all_access(url, known)
        if loaded.is_embedded:
            migrate.migrate(url)
        missing = migrate.pending(url)
        if not missing:
            try:
                database.finish_restore(url)
            except vault.VaultError:
                err.print("Erased customers are erased again by `regulars serve`, once it has the key.")
        # The first connection was made when other tables were there.
        with database.connected(url) as restored:
            keys = restoring.live_keys(restored)
            key_notice = unlock.missing_key(loaded, restored)
    if held:
        err.print("Texts are on hold: look what was sent since the backup, then `regulars sms release`.")
    err.print(f"Restored {file}." + (" Now run `regulars migrate`." if missing else ""), markup=False)
    _tell_keys(keys, known)
    if key_notice:
        err.print(key_notice, markup=False)


def _tell_keys(keys: list[str], known: restoring.Knowledge) -> None:
    if known.revokes_all_keys:
        err.print("All API keys of the backup are revoked; make new ones with `regulars key create`.")
    elif keys:
        err.print("These API keys were live in the backup and work again; revoke those that should not:")
        for line in keys:
            err.print(f"  {line}", markup=False)


def _without_cluster(folder: Path) -> list[str]:
    """Leave the extensions of a cluster out: the file is for any PostgreSQL."""
    knows_it = (programs.major(folder) or 0) >= EXCLUDE_EXTENSION_SINCE
    return ["--exclude-extension=citus*"] if knows_it else []


def _replay(file: Path, url: str, *, replaces: bool, at_the_end: bytes) -> None:
    """Turn the backup into statements and run them as one transaction, with ours at the end."""
    with (
        _reached(url) as way,
        tempfile.TemporaryFile() as of_reader,
        tempfile.TemporaryFile() as of_writer,
    ):
        reading: list[str | Path] = [way.programs / "pg_restore", "--no-owner", "--no-privileges", "--file=-", file]
        writing: list[str | Path] = [
            *(way.programs / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"),
            *("--output=/dev/null", f"--dbname={way.address}"),
        ]
        reader = subprocess.Popen(reading, stdout=subprocess.PIPE, stderr=of_reader)  # noqa: S603  # as in backup
        writer = subprocess.Popen(  # noqa: S603  # as in backup
            writing, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=of_writer, env=way.environment
        )
        with reader, writer:
            if reader.stdout is None or writer.stdin is None:
                raise CommandError("The programs of the restore could not be connected.")
            # psql may refuse and close its end; its exit code and complaint tell the story below.
            with contextlib.suppress(BrokenPipeError):
                _pass_on(reader.stdout, writer.stdin, replaces=replaces, old_server=way.is_old_server)
            # Then pg_restore must not wait for us to take the rest.
            reader.stdout.close()
            reader_code = reader.wait()
            with contextlib.suppress(BrokenPipeError):
                # A backup that ends in the middle is not committed; without its end psql would not notice.
                writer.stdin.write(at_the_end + COMMIT if reader_code == 0 else b"")
                writer.stdin.close()
            writer_code = writer.wait()
        if reader_code != 0 or writer_code != 0:
            raise CommandError(f"The restore changed nothing: {_reason(file, _said(of_reader), _said(of_writer))}")


def _pass_on(source: IO[bytes], target: IO[bytes], *, replaces: bool, old_server: bool) -> None:
    target.write(BEGIN)
    if replaces:
        target.write(EMPTY_THE_DATABASE)
    for _ in range(HEADER_LINES_MAX):
        line = source.readline()
        if not (old_server and line == TRANSACTION_TIMEOUT_LINE):
            target.write(line)
    shutil.copyfileobj(source, target)
    target.flush()


def _holds_tables(url: str) -> bool:
    with database.connected(url) as connection:
        row = connection.execute("SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'public')").fetchone()
        return row == (True,)


def _holds_organizations(url: str) -> bool:
    """A schema that a command has prepared and nobody has used counts as empty; tables of somebody else do not."""
    with database.connected(url) as connection:
        if connection.execute("SELECT to_regclass('public.organizations') IS NULL").fetchone() == (True,):
            return True
        return connection.execute("SELECT EXISTS (SELECT FROM organizations)").fetchone() == (True,)


@contextlib.contextmanager
def _unfinished(file: Path) -> Iterator[Path]:
    """A private file beside the target, so that a backup that fails leaves no half file under its name."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.absolute().parent)
    except OSError as error:
        raise CommandError(f"The file {file} cannot be written: {error.strerror}.", code=Exit.USAGE) from None
    os.close(descriptor)
    path = Path(name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Way:
    """How PostgreSQL's programs reach a database: which of them, by what address, with which environment."""

    programs: Path
    address: str
    environment: dict[str, str]
    is_old_server: bool


@contextlib.contextmanager
def _reached(url: str) -> Iterator[Way]:
    """Over TLS through a relay of ours, because the programs may have been built without it; else directly."""
    with database.connected(url) as connection, contextlib.ExitStack() as stack:
        parts = {name: value for name, value in conninfo_to_dict(url).items() if name != "password"}
        if connection.pgconn.ssl_in_use:
            folder = stack.enter_context(relay.opened(connection))
            kept = {name: value for name, value in parts.items() if name in {"options", "application_name"}}
            parts = {**kept, "host": str(folder), "port": "5432", "sslmode": "disable"}
        parts |= {"user": connection.info.user, "dbname": connection.info.dbname}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        # Arguments are visible to every user of the machine, so the password goes through the environment.
        if connection.info.password:
            environment["PGPASSWORD"] = connection.info.password
        version = connection.info.server_version
        yield Way(
            programs=programs.fitting(version),
            address=make_conninfo("", **parts),
            environment=environment,
            is_old_server=version < TRANSACTION_TIMEOUT_SINCE,
        )


def _said(complaints: IO[bytes]) -> bytes:
    complaints.seek(0)
    return complaints.read()


def _reason(file: Path, of_reader: bytes, of_writer: bytes) -> str:
    """What the database said, unless the file itself was at fault: then the database saw only the consequence."""
    if any(mark in of_reader for mark in CUT_OFF):
        return f"the file {file} ends in the middle, so it is not a whole backup; take it again or use another."
    return _one_line(of_reader if of_reader and b"Broken pipe" not in of_reader else of_writer)


def _one_line(complaint: bytes) -> str:
    lines = [line.strip() for line in complaint.decode(errors="replace").splitlines() if line.strip()]
    return scrub(lines[0] if lines else "the program gave no reason").rstrip(".") + "."
