"""Load and lock the SMS settings of an organization; parse a phone number."""

from regulars.cli.output import CommandError, Exit
from regulars.cli.runner import CommandContext
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.messaging.settings.store import Texting, load_texting, lock_texting


async def load_sms_settings(context: CommandContext) -> Texting:
    return _found(await load_texting(context.tx, context.organization_id))


async def lock_sms_settings(context: CommandContext) -> Texting:
    """Load them for a change: no other transaction changes them until this one ends."""
    return _found(await lock_texting(context.tx, context.organization_id))


def read_phone_number(text: str) -> str:
    try:
        return read_consent_number(text)
    except InvalidPhoneNumber as error:
        raise CommandError(f"'{text}' is not a phone number: {error.detail}", code=Exit.USAGE) from error


def _found(texting: Texting | None) -> Texting:
    if texting is None:
        raise CommandError("The organization was deleted meanwhile.")
    return texting
