"""Parse the sender of a text (a number, a short code, a name or a messaging service of Twilio), and find whether a
country refuses it. No I/O.

Operators refuse some senders or drop their texts. So these senders are refused with a reason, when they are saved and
again when a text is sent. Sources are in docs/texting.md.
"""

import re
from typing import Final

# France and its overseas departments, which follow the same rules.
FRENCH: Final = frozenset({"FR", "GF", "GP", "MQ", "RE", "YT"})
# The countries that refuse a name as sender.
NAMES_REFUSED: Final = frozenset({"CA", "US"})
NAME_CHARACTERS_MAX: Final = 11
SENDER_CHARACTERS_MAX: Final = 64
_NUMBER: Final = re.compile(r"\+[1-9][0-9]{6,14}")
_SHORT_CODE: Final = re.compile(r"[0-9]{3,8}")
_NAME: Final = re.compile(rf"(?=.{{0,{NAME_CHARACTERS_MAX - 1}}}[A-Za-z])[A-Za-z0-9 &_+-]{{1,{NAME_CHARACTERS_MAX}}}")
_FRENCH_MOBILE: Final = re.compile(r"\+33[67]")
_BETWEEN_DIGITS: Final = re.compile(r"[\s().-]")


def is_service(sender: str) -> bool:
    """Whether the sender is a messaging service, which has several numbers."""
    return sender.startswith("MG")


def is_name(sender: str) -> bool:
    """Whether the sender is a name. People cannot reply to a name, so they opt out through another number."""
    return not sender.lstrip("+").isdecimal() and not is_service(sender)


def is_long_code(sender: str) -> bool:
    """Whether the sender is an ordinary telephone number."""
    return sender.startswith("+") and sender[1:].isdecimal()


def read_sender(text: str) -> str | None:
    """Parse a sender as a user writes it, and remove the spaces of a number; None if the text is not a sender."""
    sender = text.strip()
    digits = _BETWEEN_DIGITS.sub("", sender)
    if _NUMBER.fullmatch(digits) or _SHORT_CODE.fullmatch(digits):
        return digits
    if is_service(sender) and sender.isalnum() and len(sender) <= SENDER_CHARACTERS_MAX:
        return sender
    return sender if _NAME.fullmatch(sender) else None


def why_refused(country: str, sender: str) -> str | None:
    """Why a country refuses a sender, as a sentence; None if the country accepts the sender."""
    if country in FRENCH and _FRENCH_MOBILE.match(sender):
        return "France refuses a French mobile number (+33 6 or +33 7) as sender; use a name or a short code."
    if country in NAMES_REFUSED and is_name(sender):
        return "The United States and Canada refuse a name as sender; use a number or a short code."
    return None
