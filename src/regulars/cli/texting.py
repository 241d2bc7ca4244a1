"""What the commands about texts share: the organization, its way of texting, and one transaction."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar
from uuid import UUID

import typer

from regulars.cli import database, unlock
from regulars.cli.output import CommandError, Exit
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.journeys.errors import JourneyError
from regulars.kit import settings, vault
from regulars.kit.db import Database, Tx
from regulars.kit.ids import Kind
from regulars.messaging.errors import MessagingError
from regulars.messaging.settings.store import Texting, lock_texting
from regulars.organizations.manage import find_organization

Answer = TypeVar("Answer")

OfOrganization = Annotated[str, typer.Option("--organization", "-o", help="Name of the organization.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]
Act = Callable[[Tx, UUID, Texting], Awaitable[Answer]]


def run(organization: str, act: Act[Answer]) -> Answer:
    """Run a use case in one transaction of the organization."""
    return run_unlocked(organization, lambda tx, organization_id, texting, _vault: act(tx, organization_id, texting))


def run_unlocked(organization: str, act: Callable[[Tx, UUID, Texting, vault.AnyVault], Awaitable[Answer]]) -> Answer:
    """The same for what seals a secret."""
    loaded = settings.load()
    with database.ready(loaded) as url:
        opened = vault.of(unlock.unlocked(loaded, url))

        async def work() -> Answer:
            pool = Database(url, pool_max=2)
            await pool.open()
            try:
                async with pool.transaction() as tx:
                    found = await find_organization(tx.connection, organization)
                    texting = None if found is None else await lock_texting(tx, found.id)
                    if found is None or texting is None:
                        raise CommandError(
                            f"There is no organization named '{organization}'; `regulars organization list` shows them"
                            " all."
                        )
                    return await act(tx, found.id, texting, opened)
            finally:
                await pool.close()

        try:
            return asyncio.run(work())
        except (MessagingError, JourneyError) as error:
            raise CommandError(str(error)) from error


def read_number(text: str) -> str:
    try:
        return read_consent_number(text)
    except InvalidPhoneNumber as error:
        raise CommandError(f"'{text}' is no phone number: {error.detail}", code=Exit.USAGE) from error


def read_id(kind: Kind, text: str) -> UUID:
    identifier = kind.decode(text)
    if identifier is None:
        raise CommandError(f"'{text}' is not the id of a {kind.noun}; ids start with {kind.prefix}.", code=Exit.USAGE)
    return identifier
