"""The types of attributes: infer a type from the first value of a key, and interpret values by their type.

No function raises: for a value that does not fit its type, `interpret` returns None.
"""

import re
import unicodedata
from collections.abc import Collection
from datetime import date, datetime, tzinfo
from decimal import Decimal
from enum import StrEnum
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


def infer_type(value: str) -> AttributeType:
    """Return the type to register for a new key whose first value is this."""
    if value in _BOOLEANS:
        return AttributeType.BOOLEAN
    if _NUMBER.fullmatch(value):
        return AttributeType.NUMBER
    if _read_date(value) is not None:
        return AttributeType.DATE
    return AttributeType.TEXT


def has_leading_zeros(value: str) -> bool:
    """Whether the value is a number with leading zeros, such as a postal code, for which the type text is better."""
    return _LEADING_ZEROS.fullmatch(value) is not None


def interpret(declared: AttributeType, value: str, *, allowed_values: Collection[str] = ()) -> Interpreted | None:
    """Convert the value, without outer spaces, to its type; None, which no filter matches, if it does not fit."""
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
            return (
                value if value in allowed_values or value in {allowed.strip() for allowed in allowed_values} else None
            )


def day_of(value: date | datetime, zone: tzinfo) -> date:
    """Return the calendar day of a value in a time zone; a date without a time is that day in every zone."""
    if not isinstance(value, datetime):
        return value
    return in_zone(value, zone).date()


def fold_text(value: str) -> str:
    """Fold a text for comparison: Unicode composition, case and outer spaces do not matter; accents do."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", value.strip()).casefold())


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
