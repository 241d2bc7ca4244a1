"""Run a command: its common options, a database pool, one transaction for an organization, and the audit log."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import database, database_pool
from regulars.cli.output import CommandError, ExitCode
from regulars.kit import settings
from regulars.kit import vault as vaults
from regulars.kit.connection import Connection
from regulars.kit.db import STATEMENT_TIMEOUT_MS, Database, Tx
from regulars.kit.ids import IdKind
from regulars.kit.settings import Settings
from regulars.organizations import manage
from regulars.organizations.model import Organization

Result = TypeVar("Result")

OfOrganization = Annotated[str, typer.Option("--organization", "-o", help="Name of the organization.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The transaction in which a command acts for one organization, and the vault that encrypts its secrets."""

    tx: Tx
    organization_id: UUID
    vault: vaults.AnyVault

    async def record(self, act: str, subject: str, *, before: Any = None, after: Any = None) -> None:
        await record(self.tx, self.organization_id, OPERATOR, act, subject, before=before, after=after)


UseCase = Callable[[CommandContext], Awaitable[Result]]
Parameters = ParamSpec("Parameters")
AfterCommit = Callable[[Database, UUID], Awaitable[object]]


def run(
    organization: str, use_case: UseCase[Result], *, needs_vault: bool = False, after_commit: AfterCommit | None = None
) -> Result:
    """Run a use case in one transaction of the organization with this name.

    `needs_vault` means that it stores a secret: the encryption key is checked, and cannot be changed until the commit.
    """

    async def work(pool: Database, current_settings: Settings) -> Result:
        vault = vaults.of(current_settings)
        async with pool.transaction() as tx:
            if needs_vault:
                await vaults.lock_key(tx.connection, vault)
            owner = await find_organization(tx.connection, organization)
            result = await use_case(CommandContext(tx=tx, organization_id=owner.id, vault=vault))
        if after_commit is not None:
            await after_commit(pool, owner.id)
        return result

    return run_on_pool(work, needs_vault=needs_vault)


def bind(
    function: Callable[Concatenate[Tx, UUID, Parameters], Awaitable[Result]],
    *arguments: Parameters.args,
    **options: Parameters.kwargs,
) -> UseCase[Result]:
    """Make a use case for `run` of a function whose first two parameters are the transaction and the organization."""
    return lambda context: function(context.tx, context.organization_id, *arguments, **options)


def change(
    organization: str,
    use_case: UseCase[Result],
    act: str,
    subject: str,
    *,
    after: Any = None,
    after_commit: AfterCommit | None = None,
) -> Result:
    """Run a use case that changes something, and record it in the audit log in the same transaction."""

    async def work(context: CommandContext) -> Result:
        result = await use_case(context)
        await context.record(act, subject, after=after)
        return result

    return run(organization, work, after_commit=after_commit)


def transact(work: Callable[[Tx], Awaitable[Result]]) -> Result:
    """Run a use case in one transaction that belongs to no organization, or to several."""

    async def run_in_transaction(pool: Database, _settings: Settings) -> Result:
        async with pool.transaction() as tx:
            return await work(tx)

    return run_on_pool(run_in_transaction)


def run_on_pool(
    work: Callable[[Database, Settings], Awaitable[Result]],
    *,
    needs_vault: bool = False,
    may_create: bool = False,
    statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
) -> Result:
    """Run a use case that opens its own transactions.

    With `needs_vault` its settings contain the encryption key; `may_create` lets it create the embedded database.
    """
    loaded = settings.load()
    with database.ready(loaded, may_create=may_create) as url:
        current_settings = database.with_secret_key(loaded, url) if needs_vault else loaded
        return database_pool.run_on_pool(
            url, lambda pool: work(pool, current_settings), statement_timeout_ms=statement_timeout_ms
        )


async def find_organization(connection: Connection, name: str) -> Organization:
    organization = await manage.find_organization(connection, name)
    if organization is None:
        raise CommandError(f"There is no organization named '{name}'; `regulars organization list` shows them all.")
    return organization


def read_id(kind: IdKind, text: str) -> UUID:
    identifier = kind.decode(text)
    if identifier is None:
        raise CommandError(
            f"'{text}' is not the id of a {kind.noun}; ids start with {kind.prefix}.", code=ExitCode.USAGE
        )
    return identifier
