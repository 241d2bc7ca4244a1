"""Rules for what is written as text: what an `external_id`, a reference and a timestamp may look like,
and how a cell of a file is kept from being a formula."""

import re
from datetime import datetime
from typing import Final

from regulars.kit.clock import parse_timestamp
from regulars.kit.errors import FieldError, ReservedExternalId, invalid
from regulars.kit.ids import EXTERNAL_ID_CHARACTERS_MAX, RESERVED_PREFIXES

# A number in international form and a plain number begin like formulas and are none.
_HARMLESS: Final = re.compile(r"\+[1-9][0-9]{6,14}|[+-]?[0-9]+(\.[0-9]+)?")
_RISKY: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
# Where the list separator of the computer is a semicolon, a spreadsheet cuts there, and at a line break, in spite of
# the quotes: a new cell begins in the middle of this one.
_CUT: Final = re.compile(r"([;\t\r\n][ \"]*)(?=[=+@-])")


def check_external_id(value: str, *, field: str = "external_id") -> str:
    """A caller's own id: like a reference, and never with one of our prefixes."""
    check_reference(value, field=field)
    if value.startswith(RESERVED_PREFIXES):
        prefixes = ", ".join(RESERVED_PREFIXES)
        raise ReservedExternalId(
            f"{field} must not start with a reserved prefix ({prefixes}).",
            errors=(FieldError(field, "RESERVED", f"It starts with one of {prefixes}."),),
        )
    return value


def check_reference(value: str, *, field: str) -> str:
    # The common case, printable ASCII without outer spaces, is decided by three quick looks.
    if value.isascii() and value.isprintable() and value == value.strip() and 0 < len(value) <= _MAX:
        return value
    if not value or not value.strip():
        raise invalid(field, "BLANK", "It must not be empty or blank.")
    if len(value) > _MAX:
        raise invalid(field, "LENGTH", f"It has more than {_MAX} characters.")
    if value != value.strip():
        raise invalid(field, "WHITE_SPACE", "It must not start or end with white space.")
    if any(is_control(character) for character in value):
        raise invalid(field, "FORBIDDEN_CHARACTER", "It must not contain control characters.")
    return value


def read_timestamp(text: str, *, field: str) -> datetime:
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise invalid(field, "FORMAT", f"It cannot be read: {error}.") from None


_MAX = EXTERNAL_ID_CHARACTERS_MAX
_DELETE = 0x7F
_C1_END = 0x9F


def is_control(character: str) -> bool:
    """The C0 and C1 control characters (Unicode category Cc)."""
    return character < " " or _DELETE <= ord(character) <= _C1_END


def safe_cell(text: str) -> str:
    """The text, with an apostrophe before each part that a spreadsheet would take for a formula."""
    text = _CUT.sub(r"\1'", text)
    if text.startswith(_RISKY) and not _HARMLESS.fullmatch(text):
        return f"'{text}"
    return text
