"""Comparing a value with what a condition asks for, by the declared type of its key. Of a value that the type cannot
read nothing is known: it matches nothing, not even a negative comparison."""

from collections.abc import Collection
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Final

from regulars.catalog.model import AttributeType, Interpreted, day_of, fold_text, interpret
from regulars.journeys.definition import Comparison

_TEXT: Final = frozenset({"is", "is_not", "contains", "starts_with", "any_of", "none_of"})
_NUMBER: Final = frozenset({"is", "is_not", "less", "at_most", "more", "at_least", "between"})
_DATE: Final = frozenset({"before", "after", "between", "in_last_days"})
_SET: Final = frozenset({"is_set", "is_not_set"})
OFFERED: Final = {
    AttributeType.TEXT: _TEXT | _SET,
    AttributeType.NUMBER: _NUMBER | _SET,
    AttributeType.CURRENCY: _NUMBER | _SET,
    AttributeType.BOOLEAN: frozenset({"is"}) | _SET,
    AttributeType.DATE: _DATE | _SET,
    AttributeType.ENUM: frozenset({"is", "is_not", "any_of", "none_of"}) | _SET,
}
SEVERAL: Final = frozenset({"any_of", "none_of", "between"})
NO_VALUE: Final = _SET


def compare(
    comparison: Comparison,
    value: str | None,
    *,
    declared: AttributeType,
    allowed_values: Collection[str],
    wanted: str | None,
    several: tuple[str, ...],
    now: datetime,
    zone: tzinfo,
) -> bool | None:
    """Whether a stored value (None: there is none) is what the condition asks for; None where that cannot be known.
    Dates are days in the zone."""
    if value is None:
        return comparison == "is_not_set"
    read = interpret(declared, value, allowed_values=allowed_values)
    if read is None or comparison not in OFFERED[declared]:
        return None
    if comparison in NO_VALUE:
        return comparison == "is_set"
    if comparison == "in_last_days":
        today = day_of(now, zone)
        return isinstance(read, date) and timedelta(0) <= today - day_of(read, zone) <= timedelta(days=int(wanted or 0))
    others = [interpret(declared, it, allowed_values=allowed_values) for it in (several or (wanted or "",))]
    if any(it is None for it in others):
        return None
    return _holds(comparison, _plain(read, zone), [_plain(it, zone) for it in others if it is not None])


def _holds(comparison: Comparison, read: Interpreted, others: list[Interpreted]) -> bool:
    first = others[0]
    match comparison:
        case "is" | "any_of":
            return read in others
        case "is_not" | "none_of":
            return read not in others
        case "contains":
            return isinstance(read, str) and isinstance(first, str) and first in read
        case "starts_with":
            return isinstance(read, str) and isinstance(first, str) and read.startswith(first)
        case _:
            return _is_ordered(comparison, read, others)


def _is_ordered(comparison: Comparison, read: Interpreted, others: list[Interpreted]) -> bool:
    if isinstance(read, Decimal) and all(isinstance(it, Decimal) for it in others):
        place = [(it < read) - (it > read) for it in others if isinstance(it, Decimal)]
    elif isinstance(read, date) and all(isinstance(it, date) for it in others):
        place = [(it < read) - (it > read) for it in others if isinstance(it, date)]
    else:
        return False
    match comparison:
        case "less" | "before":
            return place[0] < 0
        case "at_most":
            return place[0] <= 0
        case "more" | "after":
            return place[0] > 0
        case "at_least":
            return place[0] >= 0
        case "between":
            return len(place) == 2 and place[0] >= 0 >= place[1]  # noqa: PLR2004  # from and to
        case _:
            return False


def _plain(value: Interpreted, zone: tzinfo) -> Interpreted:
    if isinstance(value, str):
        return fold_text(value)
    return day_of(value, zone) if isinstance(value, date) else value
