"""What users who may not see personal data get of a phone number."""

from typing import Final

import phonenumbers

from regulars.lists.columns import HIDDEN

_VISIBLE_DIGITS: Final = 2


def hide_digits(number: str) -> str:
    """The country code and the last two digits."""
    try:
        country = f"+{phonenumbers.parse(number).country_code}"
    except phonenumbers.NumberParseException:
        return HIDDEN
    return f"{country} {HIDDEN} {number[-_VISIBLE_DIGITS:]}"
