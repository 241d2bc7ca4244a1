"""How an organization texts, for commands that send or change it."""

from regulars.cli.frame import CommandContext
from regulars.cli.output import CommandError, Exit
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.messaging.settings.store import Texting, load_texting, lock_texting


async def load(context: CommandContext) -> Texting:
    return _found(await load_texting(context.tx, context.organization_id))


async def lock(context: CommandContext) -> Texting:
    """The same for a command that changes it: no other transaction does meanwhile."""
    return _found(await lock_texting(context.tx, context.organization_id))


def read_number(text: str) -> str:
    try:
        return read_consent_number(text)
    except InvalidPhoneNumber as error:
        raise CommandError(f"'{text}' is no phone number: {error.detail}", code=Exit.USAGE) from error


def _found(texting: Texting | None) -> Texting:
    if texting is None:
        raise CommandError("The organization was deleted meanwhile.")
    return texting
