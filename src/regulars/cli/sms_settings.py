"""Load or lock the SMS settings of an organization, and parse a phone number, for commands that deal with texts."""

from regulars.cli.output import CommandError, ExitCode
from regulars.cli.runner import CommandContext
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.texts.settings.store import Texting, load_texting, lock_texting


async def load_sms_settings(context: CommandContext) -> Texting:
    return _require_settings(await load_texting(context.tx, context.organization_id))


async def lock_sms_settings(context: CommandContext) -> Texting:
    """Load and lock the settings for a change: no other transaction can change them until this one ends."""
    return _require_settings(await lock_texting(context.tx, context.organization_id))


def read_phone_number(text: str) -> str:
    try:
        return read_consent_number(text)
    except InvalidPhoneNumber as error:
        raise CommandError(f"'{text}' is not a phone number: {error.detail}", code=ExitCode.USAGE) from error


def _require_settings(texting: Texting | None) -> Texting:
    if texting is None:
        raise CommandError("The organization was deleted meanwhile.")
    return texting
