"""Check the form of an `external_id`, a reference and a timestamp, protect CSV cells against formulas, and compare
lines."""

import re
from collections.abc import Hashable, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final, TypeVar

from regulars.kit.clock import parse_timestamp
from regulars.kit.errors import FieldError, ReservedExternalId, invalid
from regulars.kit.ids import EXTERNAL_ID_CHARACTERS_MAX, RESERVED_PREFIXES, ByExternalId, ById, IdKind, Reference

# International phone numbers and plain numbers begin like formulas but are harmless.
_HARMLESS: Final = re.compile(r"\+[1-9][0-9]{6,14}|[+-]?[0-9]+(\.[0-9]+)?")
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
# Some spreadsheets split a quoted text at a semicolon or a line break, so that a new cell begins in its middle.
_NEW_CELL: Final = re.compile(r"([;\t\r\n][ \"]*)(?=[=+@-])")

Line = TypeVar("Line", bound=Hashable)


def check_external_id(value: str, *, field: str = "external_id") -> str:
    """Check a caller's own id: the rules of a reference, and none of our prefixes."""
    check_reference(value, field=field)
    if value.startswith(RESERVED_PREFIXES):
        prefixes = ", ".join(RESERVED_PREFIXES)
        raise ReservedExternalId(
            f"{field} must not start with a reserved prefix ({prefixes}).",
            errors=(FieldError(field, "RESERVED", f"It starts with one of {prefixes}."),),
        )
    return value


def check_reference(value: str, *, field: str) -> str:
    # The common case, printable ASCII without outer spaces, takes one fast check.
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


def read_sent_reference(kind: IdKind, value: str, *, field: str) -> Reference:
    """Check a reference and parse it, like `ids.read_reference`."""
    check_reference(value, field=field)
    return ById(kind.decode(value)) if value.startswith(RESERVED_PREFIXES) else ByExternalId(value)


def read_timestamp(text: str, *, field: str) -> datetime:
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise invalid(field, "FORMAT", f"It cannot be read: {error}.") from None


_MAX = EXTERNAL_ID_CHARACTERS_MAX
_DELETE = 0x7F
_C1_END = 0x9F


def is_control(character: str) -> bool:
    """Whether the character is a C0 or C1 control character (Unicode category Cc)."""
    return character < " " or _DELETE <= ord(character) <= _C1_END


def safe_cell(text: str) -> str:
    """Put an apostrophe before each part of the text that a spreadsheet would run as a formula."""
    text = _NEW_CELL.sub(r"\1'", text)
    if text.startswith(_FORMULA_STARTS) and not _HARMLESS.fullmatch(text):
        return f"'{text}"
    return text


def diff_lines(before: Sequence[Line], after: Sequence[Line]) -> list[tuple[str, Line]]:
    """Compare two lists of lines: a line only in `before` has the sign "-", a line only in `after` "+", others none."""
    lines: list[tuple[str, Line]] = []
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            lines += [("-", line) for line in before[old_from:old_to]]
        lines += [("" if tag == "equal" else "+", line) for line in after[new_from:new_to]]
    return lines
