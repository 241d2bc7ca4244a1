"""Count the SMS parts that a text needs, and find the characters that force the longer encoding.

A part has 140 bytes. If all characters of a text are in the alphabet of GSM 03.38, each takes seven bits (a septet);
otherwise the text is sent in UTF-16. If a text has several parts, some bytes of each part are needed for a header, and
no character is split between two parts.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PARTS_MAX: Final = 10

# The capacity of a text with a single part, and of each part of a longer text, in septets and in UTF-16 units.
_SEPTETS_IN_SINGLE: Final = 160
_SEPTETS_PER_PART: Final = 153
_UNITS_IN_SINGLE: Final = 70
_UNITS_PER_PART: Final = 67
_WORD_CHARACTERS_MAX: Final = 30

_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
# Each of these characters takes two septets: an escape and its own.
_EXTENDED: Final = frozenset("\f^{}\\[~]|€")
# Regular expressions for speed, because a campaign measures a million texts.
_NOT_GSM: Final = re.compile(f"[^{re.escape(''.join(sorted(_BASIC | _EXTENDED)))}]")
_OF_TWO_SEPTETS: Final = re.compile(f"[{re.escape(''.join(sorted(_EXTENDED)))}]")
_OF_TWO_UNITS: Final = re.compile("[\U00010000-\U0010ffff]")

# Characters that word processors and phones insert, and their replacement in the GSM alphabet.
_REPLACEMENTS: Final = {
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "\u00b4": "'", "`": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\u00ab": '"', "\u00bb": '"',
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-", "\u2022": "-",
    "\u2026": "...", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2007": " ", "\t": " ", "\u200b": "",
    "\ufeff": "", "\u00d7": "x", "\u0153": "oe", "\u0152": "OE", "\u2122": "TM", "\u00ae": "(R)", "\u00a9": "(C)",
}  # fmt: skip


class Encoding(StrEnum):
    GSM_7 = "GSM-7"
    UCS_2 = "UCS-2"


@dataclass(frozen=True, slots=True)
class UnicodeCharacter:
    """A character that forces UCS-2, its first position, its word, and its replacement in the GSM alphabet."""

    character: str
    position: int
    name: str
    word: str
    replacement: str | None


@dataclass(frozen=True, slots=True)
class TextSize:
    encoding: Encoding
    parts: int
    # In septets (GSM-7) or UTF-16 units (UCS-2).
    length: int
    # How many more septets or units fit into the last part.
    left: int
    # The characters that force UCS-2.
    forcing: tuple[UnicodeCharacter, ...] = ()


def measure(text: str) -> TextSize:
    """The encoding and the number of parts of a text; an empty text has no parts."""
    forcing = tuple(_find_unicode(text))
    if forcing:
        parts, length, left = _count_parts(text, _OF_TWO_UNITS, in_single=_UNITS_IN_SINGLE, per_part=_UNITS_PER_PART)
        return TextSize(Encoding.UCS_2, parts, length, left, forcing)
    parts, length, left = _count_parts(text, _OF_TWO_SEPTETS, in_single=_SEPTETS_IN_SINGLE, per_part=_SEPTETS_PER_PART)
    return TextSize(Encoding.GSM_7, parts, length, left)


def replace_unicode(text: str) -> str:
    """The text with all characters replaced that have a replacement in the GSM alphabet."""
    return "".join(character if _fits(character) else _replace(character) or character for character in text)


def _count_parts(text: str, counts_twice: re.Pattern[str], *, in_single: int, per_part: int) -> tuple[int, int, int]:
    """The number of parts, the length, and how much more fits into the last part, in septets or units. A character that
    matches `counts_twice` takes two."""
    doubles = len(counts_twice.findall(text))
    length = len(text) + doubles
    if length <= in_single:
        return (1 if text else 0), length, in_single - length
    if not doubles:
        parts = -(-length // per_part)
        return parts, length, parts * per_part - length
    parts, used = 1, 0
    for character in text:
        size = 2 if counts_twice.match(character) else 1
        if used + size > per_part:
            parts, used = parts + 1, 0
        used += size
    return parts, length, per_part - used


def _find_unicode(text: str) -> Iterator[UnicodeCharacter]:
    seen: set[str] = set()
    for match in _NOT_GSM.finditer(text):
        character, position = match[0], match.start()
        if character in seen:
            continue
        seen.add(character)
        name = unicodedata.name(character, f"U+{ord(character):04X}")
        yield UnicodeCharacter(character, position, name.capitalize(), _word_at(text, position), _replace(character))


def _word_at(text: str, position: int) -> str:
    """The word at a position, at most `_WORD_CHARACTERS_MAX` characters before and after the position."""
    one_line = text.replace("\n", " ")
    before = one_line[max(0, position - _WORD_CHARACTERS_MAX) : position].rpartition(" ")[2]
    return before + one_line[position : position + _WORD_CHARACTERS_MAX].partition(" ")[0]


def _fits(character: str) -> bool:
    return character in _BASIC or character in _EXTENDED


def _replace(character: str) -> str | None:
    replacement = _REPLACEMENTS.get(character)
    if replacement is not None:
        return replacement
    # An accented letter that is not in the alphabet becomes the letter without its accent.
    bare = unicodedata.normalize("NFKD", character)[:1]
    return bare if bare and bare != character and _fits(bare) else None
