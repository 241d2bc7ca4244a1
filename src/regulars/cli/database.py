"""Reaching the database from a command: the embedded one is started and shared, an external one is checked first."""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from regulars.cli.output import CommandError, Exit
from regulars.kit import db_checks, db_session, migrate, releases, vault
from regulars.kit.db import STATEMENT_TIMEOUT_MS, Database, Tx
from regulars.kit.releases import Role
from regulars.kit.settings import Settings, masked_url
from regulars.organizations import secret as organization_secret
from regulars.postgres import embedded

SERVER_VERSION_MIN: Final = 150_000

Answer = TypeVar("Answer")


@contextlib.contextmanager
def opened(settings: Settings, *, may_create: bool = False, by_any_pooler: bool = False) -> Iterator[str]:
    """The address of a database that answers, is new enough and keeps sessions; released when the command ends.

    Only commands that begin something may make a database: any other would hide, behind a new and empty one, that it
    looks in the wrong folder.
    """
    # Asked for when the first sealed secret is met: most commands need none.
    organization_secret.unlock_with(lambda: vault.of(vault.with_key(settings, may_make=False)))
    if settings.database_url is None:
        if not may_create and not embedded.exists(settings.data_dir):
            raise CommandError(
                f"There is no database in {settings.data_dir}; name its folder with REGULARS_DATA_DIR or its address"
                " with DATABASE_URL, or make one with `regulars serve`.",
                code=Exit.DATABASE,
            )
        with embedded.running(settings.data_dir) as url:
            yield url
        return
    with connected(settings.database_url) as connection:
        check_version(connection)
        if not by_any_pooler:
            db_checks.refuse_by_transaction(connection, settings.database_url)
    yield settings.database_url


@contextlib.contextmanager
def ready(settings: Settings, *, may_create: bool = False) -> Iterator[str]:
    """A database with the schema of this release: ours is migrated on the way, an external one only by its owner."""
    with opened(settings, may_create=may_create) as url:
        if settings.is_embedded:
            migrate.migrate(url)
        else:
            check_schema(url, Role.SERVER)
        finish_restore(url)
        yield url


def finish_restore(url: str) -> None:
    """Do what a restore has left, if there was one; called on the schema of this release, before anything else."""
    with db_session.connect(url) as connection:
        if connection.execute("SELECT EXISTS (SELECT FROM restore_marker)").fetchone() == (True,):
            # Imported only then: it knows every room that holds people's data, and all commands come through here.
            importlib.import_module("regulars.cli.restoring").finish(url)


def place(settings: Settings) -> str:
    """Which database it is, for people."""
    return masked_url(settings.database_url) if settings.database_url else f"the database in {settings.data_dir}"


def check_schema(url: str, *roles: Role) -> None:
    """Refuse a database that a newer release keeps for itself, and one that waits to be migrated to this release."""
    with connected(url) as connection:
        releases.refuse_outdated(connection, *roles)
    missing = migrate.pending(url)
    if missing:
        raise CommandError(
            f"The database lacks {', '.join(missing)}; run `regulars migrate` and try again.", code=Exit.DATABASE
        )


@contextlib.contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection, or one sentence about why there is none."""
    try:
        connection = db_session.connect(url)
    except psycopg.OperationalError as error:
        reason = " ".join(str(error).split())
        raise CommandError(
            f"The database {masked_url(url)} cannot be reached: {masked_url(reason)}.", code=Exit.DATABASE
        ) from error
    with connection:
        yield connection


def check_version(connection: psycopg.Connection[Any]) -> None:
    version = connection.info.server_version
    if version < SERVER_VERSION_MIN:
        raise CommandError(
            f"The database is PostgreSQL {version // 10_000}, and Regulars needs version 15 or newer.",
            code=Exit.DATABASE,
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise CommandError(
            f"The database stores {encoding}; create one with ENCODING 'UTF8' and name it in DATABASE_URL.",
            code=Exit.DATABASE,
        )


def check_durable(url: str) -> None:
    with connected(url) as connection:
        db_checks.assert_durable(connection)


def run_on(url: str, work: Callable[[AsyncConnection[TupleRow]], Awaitable[Answer]]) -> Answer:
    """Run an asynchronous use case on one connection from a command that is not asynchronous itself."""

    async def run() -> Answer:
        connection = await db_session.connect_async(url)
        async with connection:
            return await work(connection)

    return asyncio.run(run())


def transact(url: str, work: Callable[[Tx], Awaitable[Answer]]) -> Answer:
    """Run an asynchronous use case in one transaction."""

    async def run() -> Answer:
        async with pool(url) as database, database.transaction() as tx:
            return await work(tx)

    return asyncio.run(run())


@contextlib.asynccontextmanager
async def pool(url: str, *, statement_timeout_ms: int = STATEMENT_TIMEOUT_MS) -> AsyncIterator[Database]:
    """A few connections, for a command that is asynchronous."""
    database = Database(url, pool_max=2, statement_timeout_ms=statement_timeout_ms)
    await database.open()
    try:
        yield database
    finally:
        await database.close()
