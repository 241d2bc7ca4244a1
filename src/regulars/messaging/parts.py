"""How many parts a text costs, and which characters make it dearer.

A part carries 140 bytes. A text whose characters are all in the alphabet of GSM 03.38 is sent in seven bits each, any
other one in UTF-16. Texts of several parts lose some bytes of each to the header that joins them, and no character is
split between two parts.
"""

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

_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
# Each takes an escape and then its own seven bits.
_EXTENDED: Final = frozenset("\f^{}\\[~]|€")

# What people get from word processors and telephones, and what says the same in seven bits.
_PLAINER: Final = {
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
class Forcing:
    """A character that forces Unicode, where it stands first, and what could stand there instead (None: nothing)."""

    character: str
    position: int
    name: str
    replacement: str | None


@dataclass(frozen=True, slots=True)
class Measured:
    encoding: Encoding
    parts: int
    # Septets or UTF-16 units, whichever the encoding counts.
    length: int
    # How much more fits before the next part begins.
    left: int
    forcing: tuple[Forcing, ...] = ()


def measure(text: str) -> Measured:
    """What a text costs; an empty one has no part."""
    forcing = tuple(_forcing(text))
    if forcing:
        sizes = [2 if ord(character) > 0xFFFF else 1 for character in text]  # noqa: PLR2004  # the end of the plane
        return _measured(Encoding.UCS_2, sizes, alone=_UNITS_ALONE, joined=_UNITS_JOINED, forcing=forcing)
    sizes = [2 if character in _EXTENDED else 1 for character in text]
    return _measured(Encoding.GSM_7, sizes, alone=_SEPTETS_ALONE, joined=_SEPTETS_JOINED, forcing=())


def make_plainer(text: str) -> str:
    """The text with every character replaced that has a replacement in seven bits."""
    return "".join(character if _fits(character) else _plainer(character) or character for character in text)


def _measured(
    encoding: Encoding, sizes: list[int], *, alone: int, joined: int, forcing: tuple[Forcing, ...]
) -> Measured:
    length = sum(sizes)
    if length <= alone:
        return Measured(encoding, 1 if sizes else 0, length, alone - length, forcing)
    parts, used = 1, 0
    for size in sizes:
        if used + size > joined:
            parts, used = parts + 1, 0
        used += size
    return Measured(encoding, parts, length, joined - used, forcing)


def _forcing(text: str) -> Iterator[Forcing]:
    seen: set[str] = set()
    for position, character in enumerate(text):
        if _fits(character) or character in seen:
            continue
        seen.add(character)
        name = unicodedata.name(character, f"U+{ord(character):04X}")
        yield Forcing(character, position, name.capitalize(), _plainer(character))


def _fits(character: str) -> bool:
    return character in _BASIC or character in _EXTENDED


def _plainer(character: str) -> str | None:
    known = _PLAINER.get(character)
    if known is not None:
        return known
    # An accented letter that the alphabet lacks becomes its bare letter.
    bare = unicodedata.normalize("NFKD", character)[:1]
    return bare if bare and bare != character and _fits(bare) else None
