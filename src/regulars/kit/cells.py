"""Cells of a file that spreadsheets open."""

import re
from typing import Final

# A number in international form and a plain number begin like formulas and are none.
_HARMLESS: Final = re.compile(r"\+[1-9][0-9]{6,14}|[+-]?[0-9]+(\.[0-9]+)?")
_RISKY: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_cell(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would take it for a formula."""
    if text.startswith(_RISKY) and not _HARMLESS.fullmatch(text):
        return f"'{text}"
    return text
