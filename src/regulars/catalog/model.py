"""The types of attributes: infer a type from the first value of a key, and interpret values by their type.

No function raises: for a value that does not fit its type, `interpret` returns None.
"""

import re
import unicodedata
from collections.abc import Iterable
from datetime import date, datetime, tzinfo
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from regulars.kit.clock import in_zone, parse_timestamp

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_LEADING_ZEROS = re.compile(r"-?0[0-9]+(?:\.[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# RFC 3339 only. Requests accept more formats of timestamps, but if those counted as dates here, keys whose type is text
# today would be inferred as dates.
_MOMENT = re.compile(
    _DATE.pattern + r"[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_WORD_BREAK = re.compile(r"[\s_.-]+|(?<=[a-z0-9])(?=[A-Z])")
_BOOLEANS = {"true": True, "false": False}


class Catalog(StrEnum):
    """The two catalogs: keys of profile attributes, and keys of product properties."""

    ATTRIBUTES = "attributes"
    PRODUCTS = "products"


class AttributeType(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    # Currency and enum are never inferred from a value; a user assigns them.
    CURRENCY = "currency"
    ENUM = "enum"


# What pages call each type.
TYPE_LABELS: Final = {
    AttributeType.TEXT: "text",
    AttributeType.NUMBER: "number",
    AttributeType.BOOLEAN: "true or false",
    AttributeType.DATE: "date",
    AttributeType.CURRENCY: "amount",
    AttributeType.ENUM: "fixed list",
}


class KeyFilter(NamedTuple):
    """Which keys to list: those whose name contains a text, and those of a type."""

    containing: str | None = None
    declared: AttributeType | None = None


# A date without a time is that day in every time zone, and is never converted to a timestamp.
Interpreted = str | Decimal | bool | date | datetime
Scalar = str | int | float | bool


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A key and how its values are interpreted; only an enum has a list of allowed values."""

    key: str
    type: AttributeType
    allowed_values: tuple[str, ...] = ()
    # Whether its first value was a number with leading zeros.
    has_leading_zeros: bool = False
    created_at: datetime
    updated_at: datetime

    @property
    def distinct_values(self) -> tuple[str, ...]:
        """The allowed values, each in its first spelling."""
        return list_distinct(self.allowed_values)

    @property
    def other_spellings(self) -> tuple[tuple[str, str], ...]:
        """The allowed values that are another spelling of an earlier one, each with that one."""
        return find_other_spellings(self.allowed_values)


def infer_type(value: str) -> AttributeType:
    """Return the type to register for a new key whose first value is this."""
    if value in _BOOLEANS:
        return AttributeType.BOOLEAN
    if _NUMBER.fullmatch(value):
        return AttributeType.NUMBER
    if _read_date(value) is not None:
        return AttributeType.DATE
    return AttributeType.TEXT


def label_key(key: str) -> str:
    """The name of a key for people: "Loyalty tier" for `loyalty_tier` and for `loyaltyTier`."""
    words = _WORD_BREAK.split(key)
    label = " ".join(word if word.isupper() else word.lower() for word in words if word)
    return label[:1].upper() + label[1:] or key


def has_leading_zeros(value: str) -> bool:
    """Whether the value is a number with leading zeros, such as a postal code, for which the type text is better."""
    return _LEADING_ZEROS.fullmatch(value) is not None


def interpret(declared: AttributeType, value: str, *, allowed_values: tuple[str, ...] = ()) -> Interpreted | None:
    """Convert the value, without outer spaces, to its type; None, which no filter matches, if it does not fit.

    A value of an enum becomes the allowed value with the same spelling, or else the first that differs only in case or
    composition.
    """
    value = value.strip()
    match declared:
        case AttributeType.TEXT:
            return value
        case AttributeType.NUMBER | AttributeType.CURRENCY:
            return Decimal(value) if _NUMBER.fullmatch(value) else None
        case AttributeType.BOOLEAN:
            return _BOOLEANS.get(value)
        case AttributeType.DATE:
            return _read_date(value)
        case AttributeType.ENUM:
            first_spellings, spellings = _index_spellings(allowed_values)
            return value if value in spellings else first_spellings.get(fold_text(value))


def day_of(value: date | datetime, zone: tzinfo) -> date:
    """Return the calendar day of a value in a time zone; a date without a time is that day in every zone."""
    if not isinstance(value, datetime):
        return value
    return in_zone(value, zone).date()


def fold_text(value: str) -> str:
    """Fold a text for comparison: Unicode composition, case and outer spaces do not matter; accents do."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", value.strip()).casefold())


@lru_cache(maxsize=256)
def _index_spellings(allowed_values: tuple[str, ...]) -> tuple[dict[str, str], frozenset[str]]:
    """The first spelling of each allowed value by its folded text, and all spellings."""
    spellings = [value.strip() for value in allowed_values]
    return {fold_text(value): value for value in reversed(spellings)}, frozenset(spellings)


def list_distinct(values: Iterable[str]) -> tuple[str, ...]:
    """The values without those that differ from an earlier one only in case, composition or outer spaces."""
    first_spellings: dict[str, str] = {}
    for value in values:
        first_spellings.setdefault(fold_text(value), value)
    return tuple(first_spellings.values())


def find_other_spellings(values: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The values that differ from an earlier one only in case, composition or outer spaces, each with that one."""
    first_spellings: dict[str, str] = {}
    pairs = [(value, first_spellings.setdefault(fold_text(value), value)) for value in values]
    return tuple((value, first) for value, first in pairs if value != first)


def spell(value: Scalar) -> str:
    """Return a product property as text: numbers in plain decimals, booleans as `true` and `false`."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    plain = format(Decimal(repr(value)), "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _read_date(value: str) -> date | datetime | None:
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
        return parse_timestamp(value) if _MOMENT.fullmatch(value) else None
    except ValueError:
        return None
