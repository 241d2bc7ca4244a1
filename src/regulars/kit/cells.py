"""Cells of a file that spreadsheets open."""

import re
from typing import Final

# A number in international form and a plain number begin like formulas and are none.
_HARMLESS: Final = re.compile(r"\+[1-9][0-9]{6,14}|[+-]?[0-9]+(\.[0-9]+)?")
_RISKY: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
# Where the list separator of the computer is a semicolon, a spreadsheet cuts there, and at a line break, in spite of
# the quotes: a new cell begins in the middle of this one.
_CUT: Final = re.compile(r"([;\t\r\n][ \"]*)(?=[=+@-])")


def safe_cell(text: str) -> str:
    """The text, with an apostrophe before whatever a spreadsheet would take for a formula."""
    text = _CUT.sub(r"\1'", text)
    if text.startswith(_RISKY) and not _HARMLESS.fullmatch(text):
        return f"'{text}"
    return text
