"""What commands share that do one thing for one organization: its name, one transaction, one sentence if refused."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar
from uuid import UUID

import typer

from regulars.cli.output import CommandError, Exit
from regulars.kit.db import Database, Tx
from regulars.kit.ids import Kind
from regulars.kit.vault import VaultError
from regulars.organizations.manage import find_organization

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
        opened = Database(url, pool_max=2)
        await opened.open()
        try:
            async with opened.transaction() as tx:
                found = await find_organization(tx.connection, organization)
                if found is None:
                    raise CommandError(
                        f"There is no organization named '{organization}'; `regulars organization list` shows them all."
                    )
                answer = await act(tx, found.id)
            if afterwards is not None:
                await afterwards(opened, found.id)
            return answer
        finally:
            await opened.close()

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
