"""Columns of dictionary-encoded values. Each distinct value is parsed by the declared type of its attribute or product
property (its key), and compared only once."""

import calendar
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from sys import getsizeof
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from regulars.catalog.model import AttributeType, day_of, fold_text, interpret
from regulars.columns.engine.calendar import EPOCH_ORDINAL, NO_DAY, Zone, number_of, read_days
from regulars.columns.engine.encoding import Array, Dictionary
from regulars.columns.engine.numbers import Numbers
from regulars.conditions.comparisons import FEBRUARY, LEAP_DAY, ValueTest, day_range_of, last_of_next, text_predicate
from regulars.conditions.tree import ValueComparison


@dataclass(slots=True)
class LoadProgress:
    """How many values have to be loaded or parsed, and how many were so far."""

    total: int = 0
    done: int = 0


YES, NO, UNREADABLE = np.int8(1), np.int8(0), np.int8(-1)
_TRUTH: Final = {True: YES, False: NO, None: UNREADABLE}
# Fewer values are compared one by one with `ValueTest`; the vectorized code gives the same results.
VECTORIZED_VALUES_MIN: Final = 2_000
# How many values are parsed before the progress is updated.
CHUNK_VALUES: Final = 1 << 16


class ParsedValues:
    """The distinct values of a column, parsed by their declared type; new values are appended."""

    def __init__(self, declared: AttributeType, allowed_values: tuple[str, ...], zone: str) -> None:
        self._declared = declared
        self._allowed = allowed_values
        self._zone = ZoneInfo(zone)
        self._texts: list[str] = []
        self._bytes_of_texts = 0
        self._days = np.zeros(0, np.int32)
        self._numbers = Numbers()

    @property
    def nbytes(self) -> int:
        return self._days.nbytes + self._numbers.nbytes + self._bytes_of_texts

    def truth(
        self, condition: ValueComparison, values: Sequence[str], today: date, progress: LoadProgress | None = None
    ) -> Array:
        """For each value whether the comparison holds: YES, NO, or UNREADABLE."""
        progress = progress or LoadProgress()
        test = ValueTest(condition, declared=self._declared, allowed_values=self._allowed, today=today, zone=self._zone)
        if len(values) >= VECTORIZED_VALUES_MIN:
            match self._declared:
                case AttributeType.DATE:
                    self._read_days(values, progress)
                    holds = _compare_parsable(
                        condition, len(values), lambda: _compare_days(condition, self._days, today, self._zone)
                    )
                    return np.where(self._days == NO_DAY, UNREADABLE, holds)
                case AttributeType.NUMBER | AttributeType.CURRENCY:
                    self._read_numbers(values, progress)
                    holds = _compare_parsable(condition, len(values), lambda: self._numbers.compare(condition, test))
                    return np.where(self._numbers.is_parsable, holds, UNREADABLE)
                case AttributeType.TEXT:
                    return _compare_parsable(condition, len(values), lambda: self._compare_texts(condition, values))
                case _:
                    pass
        return np.fromiter((_TRUTH[test(value)] for value in values), np.int8, len(values))

    def have_anniversary(
        self, values: Sequence[str], first: date, last: date, progress: LoadProgress | None = None
    ) -> Array:
        """For each value, which is a date, whether its anniversary is between two days: YES, NO, or UNREADABLE."""
        self._read_days(values, progress or LoadProgress())
        holds = _have_anniversary(self._days, first, last).astype(np.int8)
        return np.where(self._days == NO_DAY, UNREADABLE, holds)

    def _read_days(self, values: Sequence[str], progress: LoadProgress) -> None:
        zone = Zone(self._zone.key)
        new_days = [read_days(chunk, zone, self._parse_day) for chunk in _unparsed(values, self._days.size, progress)]
        self._days = np.concatenate([self._days, *new_days])

    def _parse_day(self, value: str) -> int:
        parsed = interpret(AttributeType.DATE, value)
        return day_of(parsed, self._zone).toordinal() - EPOCH_ORDINAL if isinstance(parsed, date) else NO_DAY

    def _read_numbers(self, values: Sequence[str], progress: LoadProgress) -> None:
        for chunk in _unparsed(values, self._numbers.is_parsable.size, progress):
            self._numbers.add(chunk, lambda value: interpret(AttributeType.NUMBER, value) is not None)

    def _compare_texts(self, condition: ValueComparison, values: Sequence[str]) -> Array:
        new_texts = [fold_text(value) for value in values[len(self._texts) :]]
        self._texts += new_texts
        # Each entry of the list takes 8 bytes.
        self._bytes_of_texts += sum(map(getsizeof, new_texts)) + 8 * len(new_texts)
        return np.fromiter(map(text_predicate(condition), self._texts), bool, len(self._texts))


class CodedColumn:
    """A column of codes, the dictionary of its values, and the parsed values."""

    def __init__(self, dictionary: Dictionary, codes: Array) -> None:
        self.dictionary = dictionary
        self.codes = codes
        self._parsed: dict[tuple[AttributeType, tuple[str, ...], str], ParsedValues] = {}

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.dictionary.nbytes + sum(parsed.nbytes for parsed in self._parsed.values())

    def parse_as(self, declared: AttributeType, allowed_values: tuple[str, ...], zone: str) -> ParsedValues:
        cache_key = (declared, allowed_values, zone)
        if cache_key not in self._parsed:
            # The column has one type at a time, so the values parsed by an earlier type are dropped.
            self._parsed = {cache_key: ParsedValues(declared, allowed_values, zone)}
        return self._parsed[cache_key]


def _unparsed(values: Sequence[str], parsed_count: int, progress: LoadProgress) -> Iterator[Sequence[str]]:
    """The values that are not parsed yet, in chunks, so that the progress can be shown."""
    progress.total += len(values) - parsed_count
    for first in range(parsed_count, len(values), CHUNK_VALUES):
        chunk = [value.strip() for value in values[first : first + CHUNK_VALUES]]
        yield chunk
        progress.done += len(chunk)


def _compare_parsable(condition: ValueComparison, count: int, compare: Callable[[], Array]) -> Array:
    """`is_set` and `is_not_set` have the same result for all parsable values; other conditions call `compare`."""
    if condition.comparison in {"is_set", "is_not_set"}:
        return np.full(count, condition.comparison == "is_set", np.int8)
    return compare().astype(np.int8)


def _compare_days(condition: ValueComparison, days: Array, today: date, zone: ZoneInfo) -> Array:
    if condition.comparison == "anniversary_in_next_days":
        return _have_anniversary(days, today, last_of_next(condition.days, today))
    low, high, is_within = day_range_of(condition, today, zone)
    holds: Array = ((days >= number_of(low)) & (days <= number_of(high))) == is_within
    return holds


def _have_anniversary(days: Array, first: date, last: date) -> Array:
    """Whether the anniversary of each date is between two days, by month and day."""
    # Indexed by month * 32 + day; 367 days contain every date.
    is_included = np.zeros(13 * 32, bool)
    for ahead in range(min((last - first).days + 1, 367)):
        day = first + timedelta(days=ahead)
        is_included[day.month * 32 + day.day] = True
        if (day.month, day.day) == (FEBRUARY, LEAP_DAY - 1) and not calendar.isleap(day.year):
            # In a year without 29 February the anniversary is on the 28th.
            is_included[FEBRUARY * 32 + LEAP_DAY] = True
    parsed = np.where(days == NO_DAY, 0, days).astype("datetime64[D]")
    months = parsed.astype("datetime64[M]")
    month = months.astype(np.int64) % 12 + 1
    day = (parsed - months).astype(np.int64) + 1
    holds: Array = is_included[month * 32 + day]
    return holds
