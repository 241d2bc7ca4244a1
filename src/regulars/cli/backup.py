"""`regulars backup` and `regulars restore`: write the database to a file with pg_dump, and replace it by that file."""

import contextlib
import dataclasses
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Final

import psycopg
import typer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from regulars.cli import database, restore_replay
from regulars.cli.output import CommandError, ExitCode, err
from regulars.kit import migrate, settings, vault
from regulars.kit.cluster import IS_CLUSTER
from regulars.kit.log import scrub
from regulars.postgres import programs
from regulars.processes import in_use, serve_lock

# pg_restore 17 and newer write TRANSACTION_TIMEOUT_LINE within their first lines; servers before 17 do not know it.
HEADER_LINES_MAX: Final = 60
TRANSACTION_TIMEOUT_SINCE: Final = 170_000
TRANSACTION_TIMEOUT_LINE: Final = b"SET transaction_timeout = 0;\n"
# pg_dump has the option --exclude-extension since this major version.
EXCLUDE_EXTENSION_SINCE: Final = 17
# Emptying the database and restoring it are one transaction. We begin and commit it, not psql: psql would commit at the
# end of its input, also when this command was killed in the middle of the backup.
BEGIN: Final = b"BEGIN;\n"
COMMIT: Final = b"COMMIT;\n"
# Arguments are visible to every user of the machine, so the password goes through the environment.
SECRET_OPTIONS: Final = frozenset({"password", "sslpassword"})
TLS_VARIABLES: Final = ("PGSSL", "PGCHANNELBINDING")
# Messages of pg_restore about a truncated file.
TRUNCATION_MESSAGES: Final = (b"end of file", b"file is too short")
EMPTY_THE_DATABASE: Final = b"DROP SCHEMA public CASCADE;\nCREATE SCHEMA public;\n"

File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup file.", show_default=False)]


def backup(
    file: File, force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False
) -> None:
    if file.exists() and not force:
        raise CommandError(f"{file} exists already; choose another name or add --force.", code=ExitCode.USAGE)
    if not file.absolute().parent.is_dir():
        raise CommandError(f"The folder {file.absolute().parent} does not exist.", code=ExitCode.USAGE)
    loaded = settings.load()
    with database.opened(loaded) as url, _temporary_file(file) as temporary:
        target = _find_target(url)
        arguments = ["--format=custom", "--no-owner", "--no-privileges", *_exclude_citus(target.programs)]
        finished = subprocess.run(  # noqa: S603  # our own program and arguments, no shell
            [target.programs / "pg_dump", *arguments, f"--file={temporary}", f"--dbname={target.address}"],
            env=target.environment,
            capture_output=True,
            check=False,
        )
        if finished.returncode != 0:
            raise CommandError(f"The backup failed: {_first_line(finished.stderr)}")
        size = temporary.stat().st_size
        temporary.replace(file)
    err.print(f"Wrote {file} ({size:,} bytes).", markup=False)
    # Without the encryption key, all second factors and provider credentials in a backup are lost.
    is_file = loaded.is_embedded and loaded.secret_key is None
    key = str(loaded.data_dir / vault.KEY_FILE_NAME) if is_file else "REGULARS_SECRET_KEY"
    err.print(f"The secret key is not in the backup: keep a copy of {key} elsewhere.", markup=False)


def restore(
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Replace the data that the database holds.")] = False,
    erasures: Annotated[
        list[Path] | None,
        typer.Option(
            "--erasures", metavar="FILE", help="Erasure log of another node, or of a lost one; may be repeated."
        ),
    ] = None,
    revoke_keys: Annotated[
        bool, typer.Option("--revoke-keys", help="Revoke every API key that is valid in the backup.")
    ] = False,
) -> None:
    for path in (file, *(erasures or ())):
        if not path.is_file():
            raise CommandError(f"The file {path} does not exist.", code=ExitCode.USAGE)
    loaded = settings.load()
    with (
        serve_lock.hold(loaded),
        database.opened(loaded, may_create=True) as url,
        database.connected(url) as connection,
        in_use.exclusive(connection),
    ):
        replaces = _has_tables(connection)
        if replaces and connection.execute(IS_CLUSTER).fetchone() == (True,):
            raise CommandError(
                "The database is a cluster (Citus), whose tables a restore cannot replace; restore into an empty"
                " database and name that one in DATABASE_URL."
            )
        if replaces and _has_data(connection) and not force:
            raise CommandError("The database holds data; add --force to replace all of it with the backup.")
        changes = restore_replay.collect_changes(loaded, connection, erasures or (), revokes_all_keys=revoke_keys)
        _run_restore(file, url, replaces=replaces, last_statements=restore_replay.make_statements(changes))
        has_held_texts = restore_replay.end_all_access(url, changes)
        if loaded.is_embedded:
            migrate.migrate(url)
        missing = migrate.pending(url)
        if not missing:
            try:
                database.finish_restore(url)
            except vault.VaultError:
                err.print("`regulars serve` will erase the erased customers again, once it has the secret key.")
        # The first connection was opened before the tables were replaced.
        with database.connected(url) as restored:
            keys = restore_replay.describe_live_keys(restored)
            key_notice = database.describe_missing_key(loaded, restored)
    if has_held_texts:
        err.print("Texts are on hold: check what was sent since the backup, then run `regulars sms release`.")
    err.print(f"Restored {file}." + (" Now run `regulars migrate`." if missing else ""), markup=False)
    _print_keys(keys, changes)
    if key_notice:
        err.print(key_notice, markup=False)


def _print_keys(keys: list[str], changes: restore_replay.AccessChanges) -> None:
    if changes.revokes_all_keys:
        err.print("All API keys of the backup are revoked; create new ones with `regulars key create`.")
    elif keys:
        err.print("These API keys of the backup work again; revoke those that should not:")
        for line in keys:
            err.print(f"  {line}", markup=False)


def _exclude_citus(folder: Path) -> list[str]:
    """Leave the extensions of a Citus cluster out, so that any PostgreSQL can restore the file."""
    has_option = (programs.find_major_version(folder) or 0) >= EXCLUDE_EXTENSION_SINCE
    return ["--exclude-extension=citus*"] if has_option else []


def _run_restore(file: Path, url: str, *, replaces: bool, last_statements: bytes) -> None:
    """Run pg_restore, which turns the backup into statements, and psql, which runs them in one transaction.
    `last_statements` has further statements of that transaction."""
    target = _find_target(url)
    with tempfile.TemporaryFile() as reader_errors, tempfile.TemporaryFile() as writer_errors:
        reading: list[str | Path] = [target.programs / "pg_restore", "--no-owner", "--no-privileges", "--file=-", file]
        writing: list[str | Path] = [
            *(target.programs / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"),
            *("--output=/dev/null", f"--dbname={target.address}"),
        ]
        reader = subprocess.Popen(reading, stdout=subprocess.PIPE, stderr=reader_errors)  # noqa: S603  # as in backup
        writer = subprocess.Popen(  # noqa: S603  # as in backup
            writing, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=writer_errors, env=target.environment
        )
        with reader, writer:
            if reader.stdout is None or writer.stdin is None:
                raise CommandError("The programs of the restore could not be connected.")
            # psql may fail and close its end; its exit code and stderr are read below.
            with contextlib.suppress(BrokenPipeError):
                _copy_statements(reader.stdout, writer.stdin, replaces=replaces, is_old_server=target.is_old_server)
            # After a failure, pg_restore must not wait for us to read its remaining output.
            reader.stdout.close()
            reader_code = reader.wait()
            with contextlib.suppress(BrokenPipeError):
                # Without COMMIT, psql rolls back: a truncated backup leaves the database as it was.
                writer.stdin.write(last_statements + COMMIT if reader_code == 0 else b"")
                writer.stdin.close()
            writer_code = writer.wait()
        if reader_code != 0 or writer_code != 0:
            reason = _describe_failure(file, _read_errors(reader_errors), _read_errors(writer_errors))
            raise CommandError(f"The restore changed nothing: {reason}")


def _copy_statements(source: IO[bytes], target: IO[bytes], *, replaces: bool, is_old_server: bool) -> None:
    target.write(BEGIN)
    if replaces:
        target.write(EMPTY_THE_DATABASE)
    for _ in range(HEADER_LINES_MAX):
        line = source.readline()
        if not (is_old_server and line == TRANSACTION_TIMEOUT_LINE):
            target.write(line)
    shutil.copyfileobj(source, target)
    target.flush()


def _has_tables(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'public')").fetchone()
    return row == (True,)


def _has_data(connection: psycopg.Connection[Any]) -> bool:
    """Return whether a restore would replace data: organizations, or the tables of another program."""
    if connection.execute("SELECT to_regclass('public.organizations') IS NULL").fetchone() == (True,):
        return True
    return connection.execute("SELECT EXISTS (SELECT FROM organizations)").fetchone() == (True,)


@contextlib.contextmanager
def _temporary_file(file: Path) -> Iterator[Path]:
    """Yield a temporary file beside the target, so that a failed backup leaves no partial file."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.absolute().parent)
    except OSError as error:
        raise CommandError(f"The file {file} cannot be written: {error.strerror}.", code=ExitCode.USAGE) from None
    os.close(descriptor)
    path = Path(name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramTarget:
    """What PostgreSQL's programs need to reach a database: their folder, its address, and environment variables."""

    programs: Path
    address: str
    environment: dict[str, str]
    is_old_server: bool


def _find_target(url: str) -> ProgramTarget:
    with database.connected(url) as connection:
        over_tls = connection.pgconn.ssl_in_use
        address = {name: value for name, value in conninfo_to_dict(url).items() if name not in SECRET_OPTIONS}
        address |= {"user": connection.info.user, "dbname": connection.info.dbname}
        # The driver reads its TLS options from these variables too, and programs without TLS would refuse them.
        allowed_prefixes = TLS_VARIABLES if over_tls else ()
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PG") or name.startswith(allowed_prefixes)
        }
        if connection.info.password:
            environment["PGPASSWORD"] = connection.info.password
        version = connection.info.server_version
        return ProgramTarget(
            programs=programs.find_programs(version, over_tls=over_tls),
            address=make_conninfo("", **address),
            environment=environment,
            is_old_server=version < TRANSACTION_TIMEOUT_SINCE,
        )


def _read_errors(errors: IO[bytes]) -> bytes:
    errors.seek(0)
    return errors.read()


def _describe_failure(file: Path, reader_errors: bytes, writer_errors: bytes) -> str:
    """Return the error of psql, unless pg_restore found the file damaged: then psql reports only a consequence."""
    if any(message in reader_errors for message in TRUNCATION_MESSAGES):
        return f"the file {file} ends in the middle, so it is not a whole backup; take it again or use another."
    return _first_line(reader_errors if reader_errors and b"Broken pipe" not in reader_errors else writer_errors)


def _first_line(errors: bytes) -> str:
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    return scrub(lines[0] if lines else "the program gave no reason").rstrip(".") + "."
