"""Compares one stored value with the value of a condition, by the declared type of the value's key.

A `ValueTest` is created once for a condition, a type and a day, and then called with values. It returns True or False,
or None if the value cannot be parsed as the type; such a value never matches, not even with a negative comparison.
"""

import calendar
import operator
from collections.abc import Callable
from datetime import date, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final

from regulars.catalog.model import AttributeType, Interpreted, day_of, fold_text, interpret
from regulars.conditions.field_types import Comparison, ValueComparison, When, Window
from regulars.kit.clock import first_of_last_days

_PRESENCE: Final[tuple[Comparison, ...]] = ("is_set", "is_not_set")
_NUMBER: Final[tuple[Comparison, ...]] = ("at_least", "at_most", "between", "is", "is_not", "more", "less", *_PRESENCE)
# All comparisons of each type, in the order in which forms offer them.
COMPARISONS_BY_TYPE: Final[dict[AttributeType, tuple[Comparison, ...]]] = {
    AttributeType.TEXT: ("is", "is_not", "contains", "starts_with", "any_of", "none_of", *_PRESENCE),
    AttributeType.NUMBER: _NUMBER,
    AttributeType.CURRENCY: _NUMBER,
    AttributeType.BOOLEAN: ("is", *_PRESENCE),
    AttributeType.DATE: (
        "in_last_days",
        "not_in_last_days",
        "in_next_days",
        "anniversary_in_next_days",
        "before",
        "after",
        "between",
        *_PRESENCE,
    ),
    AttributeType.ENUM: ("any_of", "none_of", "is", "is_not", *_PRESENCE),
}
_NUMBER_OPERATORS: Final[dict[Comparison, Callable[[Any, Any], bool]]] = {
    "is": operator.eq,
    "is_not": operator.ne,
    "less": operator.lt,
    "at_most": operator.le,
    "more": operator.gt,
    "at_least": operator.ge,
}
# Comparisons with one value, with several values, and with a number of days.
ONE_VALUE: Final = frozenset(
    {"is", "is_not", "contains", "starts_with", "less", "at_most", "more", "at_least", "before", "after"}
)
SEVERAL_VALUES: Final = frozenset({"any_of", "none_of", "between"})
OF_DAYS: Final = frozenset({"in_last_days", "not_in_last_days", "in_next_days", "anniversary_in_next_days"})
# For negative comparisons, `without_value` says whether customers without a value match.
NEGATIVE: Final = frozenset({"is_not", "none_of", "not_in_last_days"})
FEBRUARY: Final = 2
LEAP_DAY: Final = 29
_DAY: Final = timedelta(days=1)

Predicate = Callable[[Interpreted], bool]
# First day, last day, and whether the days inside match (True) or the days outside (False).
DayRange = tuple[date, date, bool]


class ValueTest:
    """Compares values after it has parsed them; the caller has checked that the type allows the comparison."""

    def __init__(
        self,
        compared: ValueComparison,
        *,
        declared: AttributeType,
        allowed_values: tuple[str, ...],
        today: date,
        zone: tzinfo,
    ) -> None:
        self._declared = declared
        self._allowed_values = allowed_values
        self._holds = _predicate(compared, declared, today, zone)
        self.matches_missing = matches_missing_value(compared)

    def __call__(self, value: str | None) -> bool | None:
        if value is None:
            return self.matches_missing
        parsed = interpret(self._declared, value, allowed_values=self._allowed_values)
        return None if parsed is None else self._holds(parsed)


def matches_missing_value(compared: ValueComparison) -> bool:
    """Whether the comparison is true for a customer or product without a value."""
    return compared.comparison == "is_not_set" or (compared.comparison in NEGATIVE and bool(compared.without_value))


def holds_on(when: When, day: date | None, today: date) -> bool:
    """Whether a day matches the comparison; None is the day of an event that never happened."""
    if day is None:
        return when.comparison == "not_in_last_days" and bool(when.without_value)
    low, high, is_within = day_range_of_when(when, today)
    return (low <= day <= high) is is_within


def day_range_of_when(when: When, today: date) -> DayRange:
    match when.comparison:
        case "before":
            return _before(when.date or date.min)
        case "after":
            return _after(when.date or date.max)
        case "between":
            return when.from_ or date.max, when.to or date.min, True
        case _:
            return first_of_last_days(when.days or 1, today), today, when.comparison == "in_last_days"


def days_of(window: Window | None, today: date) -> tuple[date, date]:
    """The first and the last day of a window."""
    if window is None:
        return date.min, date.max
    if window.last_days is not None:
        return first_of_last_days(window.last_days, today), today
    return window.from_ or date.min, window.to or date.max


def anniversary_in(day: date, year: int) -> date:
    """The anniversary of a day in a year; for 29 February it is the 28th if the year has no 29th."""
    if (day.month, day.day) == (FEBRUARY, LEAP_DAY) and not calendar.isleap(year):
        return date(year, FEBRUARY, LEAP_DAY - 1)
    return day.replace(year=year)


def has_anniversary(day: date, *, first: date, last: date) -> bool:
    """Whether a day has its anniversary between two days, both included."""
    return any(first <= anniversary_in(day, year) <= last for year in range(first.year, last.year + 1))


def last_of_next(days: int | None, today: date) -> date:
    """The last of the next days, today included."""
    return today + timedelta(days=(days or 1) - 1)


def _predicate(compared: ValueComparison, declared: AttributeType, today: date, zone: tzinfo) -> Predicate:
    """A function that compares a parsed value of the declared type."""
    if compared.comparison in _PRESENCE:
        is_set = compared.comparison == "is_set"
        return lambda _: is_set
    match declared:
        case AttributeType.TEXT | AttributeType.ENUM:
            holds_for_text = text_predicate(compared)
            return lambda parsed: holds_for_text(fold_text(str(parsed)))
        case AttributeType.NUMBER | AttributeType.CURRENCY:
            return _number_predicate(compared)
        case AttributeType.BOOLEAN:
            expected = interpret(AttributeType.BOOLEAN, compared.value or "")
            return lambda parsed: parsed is expected
        case AttributeType.DATE:
            holds = _day_predicate(compared, today, zone)
            return lambda parsed: isinstance(parsed, date) and holds(day_of(parsed, zone))


def text_predicate(compared: ValueComparison) -> Callable[[str], bool]:
    """A predicate on case-folded strings, for texts and enums."""
    expected = fold_text(compared.value or "")
    options = frozenset(fold_text(value) for value in compared.values)
    match compared.comparison:
        case "is":
            return expected.__eq__
        case "is_not":
            return expected.__ne__
        case "contains":
            return lambda text: expected in text
        case "starts_with":
            return lambda text: text.startswith(expected)
        case "none_of":
            return lambda text: text not in options
        case _:
            return options.__contains__


def _number_predicate(compared: ValueComparison) -> Predicate:
    if compared.comparison == "between":
        low, high = (Decimal(value.strip()) for value in compared.values)
        return lambda parsed: isinstance(parsed, Decimal) and low <= parsed <= high
    expected, compare = Decimal((compared.value or "0").strip()), _NUMBER_OPERATORS[compared.comparison]
    return lambda parsed: compare(parsed, expected)


def _day_predicate(compared: ValueComparison, today: date, zone: tzinfo) -> Callable[[date], bool]:
    if compared.comparison == "anniversary_in_next_days":
        last = last_of_next(compared.days, today)
        return lambda day: has_anniversary(day, first=today, last=last)
    low, high, is_within = day_range_of(compared, today, zone)
    return lambda day: (low <= day <= high) is is_within


def day_range_of(compared: ValueComparison, today: date, zone: tzinfo) -> DayRange:
    match compared.comparison:
        case "before":
            return _before(_parse_day(compared.value, zone))
        case "after":
            return _after(_parse_day(compared.value, zone))
        case "between":
            low, high = (_parse_day(value, zone) for value in compared.values)
            return low, high, True
        case "in_next_days":
            return today, last_of_next(compared.days, today), True
        case _:
            return first_of_last_days(compared.days or 1, today), today, compared.comparison == "in_last_days"


def _before(day: date) -> DayRange:
    return (date.min, day - _DAY, True) if day > date.min else (date.max, date.min, True)


def _after(day: date) -> DayRange:
    return (day + _DAY, date.max, True) if day < date.max else (date.max, date.min, True)


def _parse_day(value: str | None, zone: tzinfo) -> date:
    parsed = interpret(AttributeType.DATE, value or "")
    return day_of(parsed, zone) if isinstance(parsed, date) else date.min
