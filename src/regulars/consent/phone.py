"""Parse phone numbers of consents into E.164: strictly, because a text to a misread number would reach another person.

Withdrawals and look-ups are parsed less strictly than opt-ins.
"""

import re

import phonenumbers

from regulars.consent.errors import InvalidPhoneNumber
from regulars.kit.errors import FieldError
from regulars.kit.phone import is_e164
from regulars.profiles.model import read_phone

# Digits and the separators between them, in ASCII; `fullmatch` allows nothing before or after.
NUMBER_PATTERN = r"^\+[0-9 ().\-/]{5,40}$"
_NUMBER = re.compile(NUMBER_PATTERN)


def read_consent_number(text: str, *, field: str = "phone_number") -> str:
    """The number in E.164, or `InvalidPhoneNumber`.

    The check is `is_possible_number`, not `is_valid_number`: the library's tables of assigned ranges become outdated,
    and would refuse numbers of new ranges.
    """
    if is_e164(text):
        return text
    if _NUMBER.fullmatch(text) is None:
        raise _refuse(field, "It must be written in international format, a plus and then digits.")
    try:
        number = phonenumbers.parse(text, None)
    except phonenumbers.NumberParseException:
        raise _refuse(field, "It cannot be read as an international phone number.") from None
    if number.extension or not phonenumbers.is_possible_number(number):
        raise _refuse(field, "No phone number of its country has this form.")
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164))


def read_if_number(text: str) -> str | None:
    """The number in E.164, or None if it is invalid: an invalid number has no consent and was never texted."""
    try:
        return read_consent_number(text)
    except InvalidPhoneNumber:
        return None


def read_lenient_number(text: str, *, default_country: str | None, field: str = "phone_number") -> str:
    """Parse a number to withdraw or to look up as the number of a profile is parsed: `00` counts as a plus, and a
    national number as one of the organization's default country."""
    phone = read_phone(text, default_country=default_country)
    # A phone is not reachable if its text is not a valid number.
    if not phone.reachable:
        national_hint = "" if default_country is None else f", or as in {default_country}"
        raise _refuse(
            field, f"It must be written in international format, a plus or 00 and then digits{national_hint}."
        )
    return phone.number


def read_opt_in_number(text: str, *, field: str = "phone_number") -> str:
    """The number of an opt-in, in E.164; a number without its area code is refused, because no text reaches it.

    Withdrawals and look-ups accept a number without its area code, because earlier releases stored some.
    """
    # `is_e164` checks the length, so it is False without the area code.
    if is_e164(text):
        return text
    number = read_consent_number(text, field=field)
    reason = phonenumbers.is_possible_number_with_reason(phonenumbers.parse(number, None))
    if reason != phonenumbers.ValidationResult.IS_POSSIBLE:
        raise _refuse(field, "Its area code is missing: it can be dialled only inside its own area.")
    return number


def _refuse(field: str, message: str) -> InvalidPhoneNumber:
    return InvalidPhoneNumber(f"{field}: {message}", errors=(FieldError(field, "INVALID_PHONE_NUMBER", message),))
