"""What commands share that do one thing for one organization: its name, one transaction, one sentence if refused."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar
from uuid import UUID

import typer

from regulars.cli.database import pool
from regulars.cli.organization import find_organization
from regulars.cli.output import CommandError, Exit
from regulars.kit.db import Database, Tx
from regulars.kit.ids import Kind
from regulars.kit.vault import VaultError

Answer = TypeVar("Answer")

OfOrganization = Annotated[str, typer.Option("--organization", "-o", help="Name of the organization.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]
Afterwards = Callable[[Database, UUID], Awaitable[object]]


def transact(
    url: str,
    organization: str,
    act: Callable[[Tx, UUID], Awaitable[Answer]],
    *,
    refusals: tuple[type[Exception], ...],
    afterwards: Afterwards | None = None,
) -> Answer:
    """Run a use case in one transaction for the organization of this name, and something after it is committed."""

    async def work() -> Answer:
        async with pool(url) as database:
            async with database.transaction() as tx:
                found = await find_organization(tx.connection, organization)
                answer = await act(tx, found.id)
            if afterwards is not None:
                await afterwards(database, found.id)
            return answer

    try:
        return asyncio.run(work())
    except VaultError as error:
        raise CommandError(str(error), code=Exit.USAGE) from error
    except refusals as error:
        raise CommandError(str(error)) from error


def read_id(kind: Kind, text: str) -> UUID:
    identifier = kind.decode(text)
    if identifier is None:
        raise CommandError(f"'{text}' is not the id of a {kind.noun}; ids start with {kind.prefix}.", code=Exit.USAGE)
    return identifier
