"""Whether one stored value is what a condition asks for, by the declared type of its key.

A test is made once for a condition, a type and a day, and then asked about values: True and False are answers, None
says that the type cannot read the value, which then matches nothing, not even a negative comparison.
"""

import calendar
from collections.abc import Callable, Collection
from datetime import date, timedelta, tzinfo
from decimal import Decimal
from typing import Final

from regulars.catalog.model import AttributeType, Interpreted, day_of, fold_text, interpret
from regulars.segments.definition import OfAttribute, OfProperty, When, Window

_SET: Final[frozenset[str]] = frozenset({"is_set", "is_not_set"})
_NUMBER: Final[frozenset[str]] = frozenset({"is", "is_not", "less", "at_most", "more", "at_least", "between"})
# What each type offers; a comparison that is not here cannot be asked of a key of this type.
OFFERED: Final[dict[AttributeType, frozenset[str]]] = {
    AttributeType.TEXT: frozenset({"is", "is_not", "contains", "starts_with", "any_of"}) | _SET,
    AttributeType.NUMBER: _NUMBER | _SET,
    AttributeType.CURRENCY: _NUMBER | _SET,
    AttributeType.BOOLEAN: frozenset({"is_true", "is_false"}) | _SET,
    AttributeType.DATE: frozenset(
        {"before", "after", "between", "in_last_days", "not_in_last_days", "in_next_days", "anniversary_in_next_days"}
    )
    | _SET,
    AttributeType.ENUM: frozenset({"any_of", "none_of"}) | _SET,
}
ONE_VALUE: Final = frozenset(
    {"is", "is_not", "contains", "starts_with", "less", "at_most", "more", "at_least", "before", "after"}
)
SEVERAL_VALUES: Final = frozenset({"any_of", "none_of", "between"})
OF_DAYS: Final = frozenset({"in_last_days", "not_in_last_days", "in_next_days", "anniversary_in_next_days"})
# These say whether whoever has no value counts.
NEGATIVE: Final = frozenset({"is_not", "none_of", "not_in_last_days"})
FEBRUARY: Final = 2
LEAP_DAY: Final = 29

Predicate = Callable[[Interpreted], bool]


class ValueTest:
    """A comparison that is ready to be asked; whoever makes one has checked that the type offers it."""

    def __init__(
        self,
        asked: OfAttribute | OfProperty,
        *,
        declared: AttributeType,
        allowed_values: Collection[str],
        today: date,
        zone: tzinfo,
    ) -> None:
        self._declared = declared
        self._allowed_values = frozenset(allowed_values)
        self._holds = _predicate(asked, declared, today, zone)
        self.of_no_value = asked.comparison == "is_not_set" or (
            asked.comparison in NEGATIVE and bool(asked.without_value)
        )

    def __call__(self, value: str | None) -> bool | None:
        if value is None:
            return self.of_no_value
        read = interpret(self._declared, value, allowed_values=self._allowed_values)
        return None if read is None else self._holds(read)


def holds_on(when: When, day: date | None, today: date) -> bool:
    """Whether a day, which may be missing, is as asked."""
    if day is None:
        return when.comparison == "not_in_last_days" and bool(when.without_value)
    match when.comparison:
        case "before":
            return when.date is not None and day < when.date
        case "after":
            return when.date is not None and day > when.date
        case "between":
            return when.from_ is not None and when.to is not None and when.from_ <= day <= when.to
        case "in_last_days":
            return _ago(today, when.days) <= day <= today
        case "not_in_last_days":
            return not _ago(today, when.days) <= day <= today


def days_of(window: Window | None, today: date) -> tuple[date, date]:
    """The first and the last day of a window."""
    if window is None:
        return date.min, date.max
    if window.last_days is not None:
        return _ago(today, window.last_days), today
    return window.from_ or date.min, window.to or date.max


def anniversary_in(day: date, year: int) -> date:
    """That of 29 February is the 28th in other years."""
    if (day.month, day.day) == (FEBRUARY, LEAP_DAY) and not calendar.isleap(year):
        return date(year, FEBRUARY, LEAP_DAY - 1)
    return day.replace(year=year)


def _predicate(asked: OfAttribute | OfProperty, declared: AttributeType, today: date, zone: tzinfo) -> Predicate:
    if asked.comparison in _SET:
        is_set = asked.comparison == "is_set"
        return lambda _: is_set
    match declared:
        case AttributeType.TEXT:
            return _of_text(asked)
        case AttributeType.NUMBER | AttributeType.CURRENCY:
            return _of_number(asked)
        case AttributeType.BOOLEAN:
            wanted = asked.comparison == "is_true"
            return lambda read: read is wanted
        case AttributeType.DATE:
            holds = _of_day(asked, today)
            return lambda read: isinstance(read, date) and holds(day_of(read, zone))
        case AttributeType.ENUM:
            among = frozenset(asked.values)
            is_any = asked.comparison == "any_of"
            return lambda read: (read in among) is is_any


def _of_text(asked: OfAttribute | OfProperty) -> Predicate:
    one = fold_text(asked.value or "")
    among = frozenset(fold_text(value) for value in asked.values)
    match asked.comparison:
        case "is":
            return lambda read: fold_text(str(read)) == one
        case "is_not":
            return lambda read: fold_text(str(read)) != one
        case "contains":
            return lambda read: one in fold_text(str(read))
        case "starts_with":
            return lambda read: fold_text(str(read)).startswith(one)
        case _:
            return lambda read: fold_text(str(read)) in among


def _of_number(asked: OfAttribute | OfProperty) -> Predicate:
    if asked.comparison == "between":
        low, high = (Decimal(value) for value in asked.values)
        return lambda read: isinstance(read, Decimal) and low <= read <= high
    one = Decimal(asked.value or "0")
    match asked.comparison:
        case "is":
            return lambda read: read == one
        case "is_not":
            return lambda read: read != one
        case "less":
            return lambda read: isinstance(read, Decimal) and read < one
        case "at_most":
            return lambda read: isinstance(read, Decimal) and read <= one
        case "more":
            return lambda read: isinstance(read, Decimal) and read > one
        case _:
            return lambda read: isinstance(read, Decimal) and read >= one


def _of_day(asked: OfAttribute | OfProperty, today: date) -> Callable[[date], bool]:
    last = _ahead(today, asked.days)
    match asked.comparison:
        case "in_next_days":
            return lambda day: today <= day <= last
        case "anniversary_in_next_days":
            years = range(today.year, last.year + 1)
            return lambda day: any(today <= anniversary_in(day, year) <= last for year in years)
        case "before" | "after":
            one = date.fromisoformat(asked.value or "")
            is_before = asked.comparison == "before"
            return lambda day: day < one if is_before else day > one
        case "between":
            low, high = (date.fromisoformat(value) for value in asked.values)
            return lambda day: low <= day <= high
        case _:
            first = _ago(today, asked.days)
            is_in = asked.comparison == "in_last_days"
            return lambda day: (first <= day <= today) is is_in


def _ago(today: date, days: int | None) -> date:
    return today - timedelta(days=days or 0)


def _ahead(today: date, days: int | None) -> date:
    return today + timedelta(days=days or 0)
