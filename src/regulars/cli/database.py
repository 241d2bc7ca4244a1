"""Open the database for a command: start the embedded one or check an external one, migrate it, load the key."""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import psycopg

from regulars.cli.address import find_address_here
from regulars.cli.lazy_commands import load_function
from regulars.cli.output import CommandError, ExitCode, err, format_count
from regulars.cli.start_steps import step
from regulars.kit import db_checks, db_session, horizon, migrate, releases, vault
from regulars.kit import settings as all_settings
from regulars.kit.releases import ProcessRole
from regulars.kit.settings import Settings, masked_url
from regulars.links.marks import set_link_url
from regulars.organizations import sealing
from regulars.organizations import secret as organization_secret
from regulars.postgres import embedded

# PostgreSQL 15.
SERVER_VERSION_MIN: Final = 150_000
# The number of missing migrations that an error message names; an empty database lacks all of them.
MIGRATIONS_LISTED_MAX: Final = 5


@contextlib.contextmanager
def opened(settings: Settings, *, may_create: bool = False, allows_any_pooler: bool = False) -> Iterator[str]:
    """Yield the address of a reachable database of a supported version; stop the embedded one when the command ends.

    `may_create` is for commands that set an installation up. Any other command in the wrong folder would create an
    empty database there and hide the mistake.
    """
    # The encryption key is loaded when the first encrypted secret is read: most commands read none.
    organization_secret.set_vault_finder(lambda: vault.of(vault.with_key(settings, may_create_key=False)))
    set_link_url(settings.link_url, demo_url=find_address_here(settings))
    if settings.database_url is None:
        if not may_create and not embedded.exists(settings.data_dir):
            raise CommandError(
                f"There is no database in {settings.data_dir}; name its folder with REGULARS_DATA_DIR or its address"
                " with DATABASE_URL, or make one with `regulars serve`.",
                code=ExitCode.DATABASE,
            )
        with embedded.running(settings.data_dir) as url:
            yield url
        return
    with connected(settings.database_url) as connection:
        check_version(connection)
        if not allows_any_pooler:
            db_checks.refuse_transaction_pooling(connection, settings.database_url)
    yield settings.database_url


@contextlib.contextmanager
def ready(settings: Settings, *, may_create: bool = False) -> Iterator[str]:
    """Yield a database with the schema of this release: migrate the embedded one, check an external one."""
    with opened(settings, may_create=may_create) as url:
        if settings.is_embedded:
            migrate.migrate(url)
        else:
            check_schema(url, ProcessRole.SERVER)
        finish_restore(url)
        yield url


def finish_restore(url: str) -> None:
    """Finish the last restore, if it is unfinished; needs the schema of this release and runs before anything else."""
    with db_session.connect(url) as connection:
        if connection.execute("SELECT EXISTS (SELECT FROM restore_marker)").fetchone() == (True,):
            # It loads every module that stores personal data, and all commands call this function.
            load_function("restore_replay:finish")(url)


def describe(settings: Settings) -> str:
    """Name the database in a sentence, without its password."""
    return masked_url(settings.database_url) if settings.database_url else f"the database in {settings.data_dir}"


def check_schema(url: str, *roles: ProcessRole) -> None:
    """Refuse a database that excludes this release, and one that lacks migrations of this release."""
    with connected(url) as connection:
        releases.refuse_outdated(connection, *roles)
    missing = migrate.pending(url)
    if missing:
        listed = ", ".join(missing) if len(missing) <= MIGRATIONS_LISTED_MAX else f"{len(missing)} migrations"
        raise CommandError(
            f"The database lacks {listed}; run `regulars migrate` and try again.", code=ExitCode.DATABASE
        )


@contextlib.contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect, or say in one sentence why that failed."""
    try:
        connection = db_session.connect(url)
    except psycopg.OperationalError as error:
        reason = " ".join(str(error).split())
        raise CommandError(
            f"The database {masked_url(url)} cannot be reached: {masked_url(reason)}.", code=ExitCode.DATABASE
        ) from error
    with connection:
        yield connection


def check_version(connection: psycopg.Connection[Any]) -> None:
    version = connection.info.server_version
    if version < SERVER_VERSION_MIN:
        raise CommandError(
            f"The database is PostgreSQL {version // 10_000}, and Regulars needs version 15 or newer.",
            code=ExitCode.DATABASE,
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise CommandError(
            f"The database stores {encoding}; create one with ENCODING 'UTF8' and name it in DATABASE_URL.",
            code=ExitCode.DATABASE,
        )


def check_fsync_settings(url: str) -> None:
    with connected(url) as connection:
        db_checks.assert_durable(connection)


def check_change_lists(url: str) -> None:
    with connected(url) as connection:
        horizon.warn_at_start(connection)


def with_secret_key(settings: Settings, url: str) -> Settings:
    """Return the settings with the encryption key, checked against the fingerprint that the database stores.

    Call it before `settings.database_url` is set for the embedded database: without an address it counts as embedded.
    """
    try:
        with connected(url) as connection:
            # If the database already stores a fingerprint, a new key would be the wrong one, so none is made.
            stored = vault.read_fingerprint(connection)
            if settings.is_embedded and settings.secret_key is None:
                vault.finish_key_rotation(settings.data_dir, stored)
            complete = vault.with_key(settings, may_create_key=stored is None)
            opened_vault = vault.of(complete)
            vault.register_key(connection, opened_vault)
            if opened_vault.fingerprint is not None:
                sealing.write_sealed(connection, opened_vault)
    except vault.VaultError as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from error
    return complete


def describe_missing_key(settings: Settings, connection: psycopg.Connection[Any]) -> str | None:
    """Describe which encryption key `regulars serve` will need for this database, if this machine has another key or
    none.

    A restore prints it, because then the machine of the backup, which has the key, can often still be reached.
    """
    has_table = connection.execute("SELECT to_regclass('vault_key') IS NOT NULL").fetchone() == (True,)
    needed = vault.read_fingerprint(connection) if has_table else None
    try:
        own_fingerprint = vault.of(vault.with_key(settings, may_create_key=False)).fingerprint
    except vault.VaultError as error:
        return str(error)
    if needed is None or needed == own_fingerprint:
        return None
    is_file = settings.is_embedded and settings.secret_key is None
    step = f"copy its {vault.KEY_FILE_NAME} into {settings.data_dir}" if is_file else "set REGULARS_SECRET_KEY to it"
    return (
        f"`regulars serve` will need the secret key with the fingerprint {needed}, which is not in the backup: {step}"
        " (on the machine of the backup it is REGULARS_SECRET_KEY or the file secret.key of the data folder)."
    )


def migrate_schema() -> None:
    """`regulars migrate`."""
    with opened(all_settings.load(), may_create=True) as url:
        applied = apply_migrations(url)
        finish_restore(url)
    if applied:
        err.print(f"Applied {format_count(len(applied), 'migration')}, the last one is {applied[-1]}.", markup=False)
    else:
        err.print("Nothing to do: the schema is up to date.", markup=False)


def apply_migrations(url: str) -> list[str]:
    """Apply the missing migrations, and say how many of them are done."""
    missing = migrate.pending(url)
    if not missing:
        return migrate.migrate(url)
    with step("Applying migrations", "database.migrating") as current:
        current.count(0, len(missing))
        return migrate.migrate(url, on_applied=lambda done: current.count(done, max(done, len(missing))))
