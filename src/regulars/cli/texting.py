"""What the commands about texts and journeys share: the organization's way of texting, and one transaction."""

from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from regulars.cli import database, unlock
from regulars.cli.output import CommandError, Exit
from regulars.cli.transact import Afterwards, transact
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.journeys.errors import JourneyError
from regulars.kit import settings, vault
from regulars.kit.db import Tx
from regulars.messaging.errors import MessagingError
from regulars.messaging.quiet import wait_until_quiet
from regulars.messaging.settings.store import Texting, load_texting, lock_texting

Answer = TypeVar("Answer")

Act = Callable[[Tx, UUID, Texting], Awaitable[Answer]]
Load = Callable[[Tx, UUID], Awaitable[Texting | None]]


def run(organization: str, act: Act[Answer]) -> Answer:
    """Run a use case in one transaction of the organization."""
    return _run(organization, lambda tx, it, texting, _vault: act(tx, it, texting), load=load_texting)


def run_quietly(organization: str, act: Act[Answer]) -> Answer:
    """The same for what may withdraw: it is answered when nothing is on its way any more."""
    return _run(
        organization,
        lambda tx, it, texting, _vault: act(tx, it, texting),
        load=load_texting,
        afterwards=wait_until_quiet,
    )


def run_changing(organization: str, act: Callable[[Tx, UUID, Texting, vault.AnyVault], Awaitable[Answer]]) -> Answer:
    """The same for what changes how the organization texts, and may seal a secret: nobody else does meanwhile."""
    return _run(organization, act, load=lock_texting)


def _run(
    organization: str,
    act: Callable[[Tx, UUID, Texting, vault.AnyVault], Awaitable[Answer]],
    *,
    load: Load,
    afterwards: Afterwards | None = None,
) -> Answer:
    loaded = settings.load()
    with database.ready(loaded) as url:
        opened = vault.of(unlock.unlocked(loaded, url))

        async def work(tx: Tx, organization_id: UUID) -> Answer:
            await vault.lock_key(tx.connection, opened)
            texting = await load(tx, organization_id)
            if texting is None:
                raise CommandError("The organization was deleted meanwhile.")
            return await act(tx, organization_id, texting, opened)

        return transact(url, organization, work, refusals=(MessagingError, JourneyError), afterwards=afterwards)


def read_number(text: str) -> str:
    try:
        return read_consent_number(text)
    except InvalidPhoneNumber as error:
        raise CommandError(f"'{text}' is no phone number: {error.detail}", code=Exit.USAGE) from error
