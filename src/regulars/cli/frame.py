"""What commands share: their options, the database, one transaction of one organization, and its audit log."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from uuid import UUID

import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import database, unlock
from regulars.cli.output import CommandError, Exit
from regulars.kit import settings
from regulars.kit import vault as vaults
from regulars.kit.db import STATEMENT_TIMEOUT_MS, Database, Tx
from regulars.kit.ids import Kind
from regulars.kit.settings import Settings
from regulars.organizations import manage
from regulars.organizations.model import Organization

Answer = TypeVar("Answer")

OfOrganization = Annotated[str, typer.Option("--organization", "-o", help="Name of the organization.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The transaction in which a command acts for one organization."""

    tx: Tx
    organization_id: UUID
    vault: vaults.AnyVault

    async def record(self, act: str, subject: str, *, before: Any = None, after: Any = None) -> None:
        await record(self.tx, self.organization_id, OPERATOR, act, subject, before=before, after=after)


Act = Callable[[CommandContext], Awaitable[Answer]]


def run(
    organization: str,
    act: Act[Answer],
    *,
    seals: bool = False,
    afterwards: Callable[[Database, UUID], Awaitable[object]] | None = None,
) -> Answer:
    """Run a use case in one transaction of the organization with this name.

    `seals` says that it stores a secret: the key is checked, and does not change meanwhile. `afterwards` runs after the
    commit.
    """

    async def work(pool: Database, complete: Settings) -> Answer:
        vault = vaults.of(complete)
        async with pool.transaction() as tx:
            if seals:
                await vaults.lock_key(tx.connection, vault)
            found = await find_organization(tx.connection, organization)
            answer = await act(CommandContext(tx=tx, organization_id=found.id, vault=vault))
        if afterwards is not None:
            await afterwards(pool, found.id)
        return answer

    return run_on_pool(work, seals=seals)


def transact(work: Callable[[Tx], Awaitable[Answer]]) -> Answer:
    """Run a use case in one transaction that belongs to no organization, or to several."""

    async def run_it(pool: Database, _settings: Settings) -> Answer:
        async with pool.transaction() as tx:
            return await work(tx)

    return run_on_pool(run_it)


def run_on_pool(
    work: Callable[[Database, Settings], Awaitable[Answer]],
    *,
    seals: bool = False,
    may_create: bool = False,
    statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
) -> Answer:
    """Run what needs several transactions; with `seals` the settings have the key of the secrets in them."""
    loaded = settings.load()

    async def opened(url: str, complete: Settings) -> Answer:
        async with database.pool(url, statement_timeout_ms=statement_timeout_ms) as pool:
            return await work(pool, complete)

    with database.ready(loaded, may_create=may_create) as url:
        return asyncio.run(opened(url, unlock.unlocked(loaded, url) if seals else loaded))


async def find_organization(connection: manage.Connection, name: str) -> Organization:
    organization = await manage.find_organization(connection, name)
    if organization is None:
        raise CommandError(f"There is no organization named '{name}'; `regulars organization list` shows them all.")
    return organization


def read_id(kind: Kind, text: str) -> UUID:
    identifier = kind.decode(text)
    if identifier is None:
        raise CommandError(f"'{text}' is not the id of a {kind.noun}; ids start with {kind.prefix}.", code=Exit.USAGE)
    return identifier
