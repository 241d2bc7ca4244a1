"""The faults of conditions, each with its path in the definition (its place) and a message for the user, and the checks
of fields that several kinds of conditions have. `faults` checks a whole tree."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.catalog.model import AttributeType, interpret
from regulars.conditions.comparisons import COMPARISONS_BY_TYPE, NEGATIVE, OF_DAYS, ONE_VALUE, SEVERAL_VALUES
from regulars.conditions.field_types import ValueComparison, When, Window

if TYPE_CHECKING:
    # The tree knows the kinds, and each kind knows these checks.
    from regulars.conditions.tree import Group

EMPTY_GROUP: Final = "The group is empty."
BETWEEN_VALUES: Final = 2
DATE_CHARACTERS: Final = len("2026-11-15")
# The declared type of each attribute or product property, by its key, and the values that an enum allows.
Types = Mapping[str, tuple[AttributeType, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One error in a definition; `place` is its path, such as `match.of[1].values`.

    A definition with warnings can be saved. With any fault, even a warning, the tree is not evaluated until it
    is fixed.
    """

    place: str
    message: str
    is_warning: bool = False


class ReferencedSegment(NamedTuple):
    """A segment that a condition refers to, in its current version; a segment with a fault has no members."""

    name: str
    version: int
    match: "Group"
    faults: tuple[Fault, ...] = ()
    # Those of the faults that stand for stored parts which are not valid; `match` is without these parts.
    damage: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionContext:
    """The data that conditions refer to: key types, stores, segments, and the time zone of calendar days."""

    attributes: Types = field(default_factory=dict)
    properties: Types = field(default_factory=dict)
    stores: Mapping[str, UUID] = field(default_factory=dict)
    # By id; including the segments to which a referenced segment refers itself.
    segments: Mapping[str, ReferencedSegment] = field(default_factory=dict)
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))


def list_texts_of(compared: ValueComparison, place: str) -> Iterator[tuple[str, Collection[str]]]:
    """The texts with which a comparison compares, by their place."""
    if compared.comparison in SEVERAL_VALUES:
        yield f"{place}values", compared.values
    elif compared.comparison in ONE_VALUE and compared.value is not None:
        yield f"{place}value", (compared.value,)


def check_limits(low: float | None, high: float | None, place: str, *, may_be_none: bool = False) -> Iterator[Fault]:
    if low is not None and high is not None and low > high:
        yield Fault(place, "The lower limit is above the upper one.")
    if low is None and high is None and not may_be_none:
        yield Fault(place, "Enter at least, at most, or both.")


def check_stores(stores: tuple[str, ...], place: str, context: ConditionContext) -> Iterator[Fault]:
    for store in stores:
        if store not in context.stores:
            yield Fault(place, f"There is no store {store}.")


def check_window(window: Window, place: str) -> Iterator[Fault]:
    if (window.last_days is None) is (window.from_ is None and window.to is None):
        yield Fault(place, "Use last_days, or from and to.")
    elif window.last_days is None:
        if window.from_ is None or window.to is None:
            yield Fault(place, "Enter both from and to.")
        elif window.from_ > window.to:
            yield Fault(place, "The first day is after the last one.")


def check_when(when: When, place: str, *, day_may_be_missing: bool) -> Iterator[Fault]:
    match when.comparison:
        case "before" | "after":
            if when.date is None:
                yield Fault(f"{place}.date", "The comparison needs a date.")
        case "between":
            if when.from_ is None or when.to is None:
                yield Fault(place, "Between needs from and to.")
            elif when.from_ > when.to:
                yield Fault(place, "The first day is after the last one.")
        case _:
            if when.days is None:
                yield Fault(f"{place}.days", "The comparison needs a number of days.")
    if day_may_be_missing and when.comparison == "not_in_last_days" and when.without_value is None:
        yield Fault(f"{place}.without_value", "Set whether customers who never bought match: true or false.")


def check_key(compared: ValueComparison, place: str, types: Types, *, noun: str) -> Iterator[Fault]:
    if compared.key not in types:
        yield Fault(f"{place}.key", f"No {noun} is called {compared.key}.", is_warning=True)
        return
    declared, allowed_values = types[compared.key]
    comparison = compared.comparison
    if comparison not in COMPARISONS_BY_TYPE[declared]:
        offered = ", ".join(sorted(COMPARISONS_BY_TYPE[declared]))
        message = (
            f"The {noun} {compared.key} is of type {declared.value} and does not offer {comparison}, only {offered}."
        )
        yield Fault(f"{place}.comparison", message)
        return
    if comparison in NEGATIVE and compared.without_value is None:
        owners = "customers" if noun == "attribute" else "products"
        yield Fault(f"{place}.without_value", f"Set whether {owners} without a value match: true or false.")
    if comparison in OF_DAYS and compared.days is None:
        yield Fault(f"{place}.days", "The comparison needs a number of days.")
    if comparison in ONE_VALUE:
        values = () if compared.value is None else (compared.value,)
        yield from _check_values(compared, values, f"{place}.value", declared, allowed_values)
    elif comparison in SEVERAL_VALUES:
        yield from _check_values(compared, compared.values, f"{place}.values", declared, allowed_values)


def _check_values(
    compared: ValueComparison,
    values: tuple[str, ...],
    place: str,
    declared: AttributeType,
    allowed_values: tuple[str, ...],
) -> Iterator[Fault]:
    if compared.comparison == "between" and len(values) != BETWEEN_VALUES:
        yield Fault(place, "Between needs two values.")
        return
    if not values:
        yield Fault(place, "The comparison needs a value.")
        return
    for value in values:
        if compared.comparison in {"contains", "starts_with"} and not value.strip():
            yield Fault(place, "The comparison needs a text that is not empty.")
        elif interpret(declared, value, allowed_values=allowed_values) is None:
            yield Fault(place, _describe_unparsable(value, compared.key, declared, allowed_values))
            return
    if compared.comparison == "between" and not _is_in_order(values, declared):
        yield Fault(place, "The first value is above the second.")


def _is_in_order(values: tuple[str, ...], declared: AttributeType) -> bool:
    low, high = (interpret(declared, value) for value in values)
    if isinstance(low, Decimal) and isinstance(high, Decimal):
        return low <= high
    # Dates are compared as text. Only a time near midnight may fall on another day in the organization's zone.
    return values[0].strip()[:DATE_CHARACTERS] <= values[1].strip()[:DATE_CHARACTERS]


def _describe_unparsable(value: str, key: str, declared: AttributeType, allowed: Collection[str]) -> str:
    if declared is AttributeType.ENUM:
        return f"'{value}' is none of the values of {key}: {', '.join(sorted(allowed)[:20])}."
    if declared is AttributeType.DATE:
        return f"'{value}' is not a date such as 2026-11-15."
    return f"'{value}' cannot be read as the type of {key}, which is {declared.value}."


def is_valid_comparison(compared: ValueComparison, types: Types) -> bool:
    """Whether the key is known, and its type offers the comparison with these values."""
    return next(check_key(compared, "", types, noun=""), None) is None


def blocking_faults(faults: Collection[Fault]) -> list[Fault]:
    """The faults that prevent saving."""
    return [fault for fault in faults if not fault.is_warning]
