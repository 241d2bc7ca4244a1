"""How many SMS parts a text needs, and which characters force the longer encoding.

A part carries 140 bytes. A text whose characters are all in the alphabet of GSM 03.38 is sent in seven bits each, any
other one in UTF-16. Texts of several parts lose some bytes of each to the header that joins them, and no character is
split between two parts.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PARTS_MAX: Final = 10

_SEPTETS_ALONE: Final = 160
_SEPTETS_JOINED: Final = 153
_UNITS_ALONE: Final = 70
_UNITS_JOINED: Final = 67
_WORD_CHARACTERS_MAX: Final = 30

_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
# Each takes an escape and then its own seven bits.
_EXTENDED: Final = frozenset("\f^{}\\[~]|€")
# Patterns, because a campaign measures a million texts.
_OUTSIDE: Final = re.compile(f"[^{re.escape(''.join(sorted(_BASIC | _EXTENDED)))}]")
_OF_TWO_SEPTETS: Final = re.compile(f"[{re.escape(''.join(sorted(_EXTENDED)))}]")
_OF_TWO_UNITS: Final = re.compile("[\U00010000-\U0010ffff]")

# Characters from word processors and phones, and their replacement in seven bits.
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
    """A character that forces UCS-2, its first position and the word there, and its replacement in seven bits (None: it
    has none)."""

    character: str
    position: int
    name: str
    word: str
    replacement: str | None


@dataclass(frozen=True, slots=True)
class TextSize:
    encoding: Encoding
    parts: int
    # Septets or UTF-16 units, whichever the encoding counts.
    length: int
    # How many more fit before the next part begins.
    left: int
    forcing: tuple[UnicodeCharacter, ...] = ()


def measure(text: str) -> TextSize:
    """Encoding and number of parts; an empty text has no part."""
    forcing = tuple(_find_unicode(text))
    if forcing:
        parts, length, left = _count_parts(text, _OF_TWO_UNITS, alone=_UNITS_ALONE, joined=_UNITS_JOINED)
        return TextSize(Encoding.UCS_2, parts, length, left, forcing)
    parts, length, left = _count_parts(text, _OF_TWO_SEPTETS, alone=_SEPTETS_ALONE, joined=_SEPTETS_JOINED)
    return TextSize(Encoding.GSM_7, parts, length, left)


def replace_unicode(text: str) -> str:
    """The text with every character replaced that has a replacement in seven bits."""
    return "".join(character if _fits(character) else _replace(character) or character for character in text)


def _count_parts(text: str, of_two: re.Pattern[str], *, alone: int, joined: int) -> tuple[int, int, int]:
    """The number of parts, the length, and how many more fit; some characters count as two."""
    doubles = len(of_two.findall(text))
    length = len(text) + doubles
    if length <= alone:
        return (1 if text else 0), length, alone - length
    if not doubles:
        parts = -(-length // joined)
        return parts, length, parts * joined - length
    parts, used = 1, 0
    for character in text:
        size = 2 if of_two.match(character) else 1
        if used + size > joined:
            parts, used = parts + 1, 0
        used += size
    return parts, length, joined - used


def _find_unicode(text: str) -> Iterator[UnicodeCharacter]:
    seen: set[str] = set()
    for found in _OUTSIDE.finditer(text):
        character, position = found[0], found.start()
        if character in seen:
            continue
        seen.add(character)
        name = unicodedata.name(character, f"U+{ord(character):04X}")
        yield UnicodeCharacter(character, position, name.capitalize(), _word_at(text, position), _replace(character))


def _word_at(text: str, position: int) -> str:
    """The characters around a position up to the next spaces, a few at most."""
    one_line = text.replace("\n", " ")
    before = one_line[max(0, position - _WORD_CHARACTERS_MAX) : position].rpartition(" ")[2]
    return before + one_line[position : position + _WORD_CHARACTERS_MAX].partition(" ")[0]


def _fits(character: str) -> bool:
    return character in _BASIC or character in _EXTENDED


def _replace(character: str) -> str | None:
    replacement = _REPLACEMENTS.get(character)
    if replacement is not None:
        return replacement
    # An accented letter that the alphabet lacks becomes its bare letter.
    bare = unicodedata.normalize("NFKD", character)[:1]
    return bare if bare and bare != character and _fits(bare) else None
