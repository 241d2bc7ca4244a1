"""One column of values in memory, as codes, and how its type reads each distinct value."""

import calendar
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from sys import getsizeof
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from regulars.catalog.model import AttributeType, day_of, fold_text, interpret
from regulars.conditions.comparisons import FEBRUARY, LEAP_DAY, ValueTest, span_of, text_predicate
from regulars.conditions.tree import Compared
from regulars.segments.analysis.engine.calendar import EPOCH_ORDINAL, NO_DAY, Zone, number_of, read_days
from regulars.segments.analysis.engine.encoding import Array, Dictionary
from regulars.segments.analysis.engine.numbers import Numbers


@dataclass(slots=True)
class Reading:
    """How many values there are to read, and how many are read."""

    total: int = 0
    done: int = 0


YES, NO, UNREADABLE = np.int8(1), np.int8(0), np.int8(-1)
# Fewer values than this are asked one by one: the test of one value is what everything else is held against.
FEW: Final = 2_000
VALUES_AT_ONCE: Final = 1 << 16


class Read:
    """The distinct values of a key as a type reads them; more may come at the end."""

    def __init__(self, declared: AttributeType, allowed_values: Collection[str], zone: str) -> None:
        self._declared = declared
        self._allowed = frozenset(allowed_values)
        self._zone = ZoneInfo(zone)
        self._texts: list[str] = []
        self._bytes_of_texts = 0
        self._days = np.zeros(0, np.int32)
        self._numbers = Numbers()

    @property
    def nbytes(self) -> int:
        return self._days.nbytes + self._numbers.nbytes + self._bytes_of_texts

    def truth(self, asked: Compared, values: Sequence[str], today: date, reading: Reading | None = None) -> Array:
        """For each value whether the comparison holds: YES, NO, or UNREADABLE."""
        reading = reading or Reading()
        test = ValueTest(asked, declared=self._declared, allowed_values=self._allowed, today=today, zone=self._zone)
        if len(values) >= FEW:
            match self._declared:
                case AttributeType.DATE:
                    self._read_days(values, reading)
                    held = _held(asked, len(values), lambda: _holds_on_days(asked, self._days, today, self._zone))
                    return np.where(self._days == NO_DAY, UNREADABLE, held)
                case AttributeType.NUMBER | AttributeType.CURRENCY:
                    self._read_numbers(values, reading)
                    held = _held(asked, len(values), lambda: self._numbers.hold(asked, test))
                    return np.where(self._numbers.is_readable, held, UNREADABLE)
                case AttributeType.TEXT:
                    return _held(asked, len(values), lambda: self._holds_of_texts(asked, values))
                case _:
                    pass
        return np.fromiter((_mark(test(value)) for value in values), np.int8, len(values))

    def _read_days(self, values: Sequence[str], reading: Reading) -> None:
        zone = Zone(self._zone.key)
        more = [read_days(some, zone, self._day) for some in _unread(values, self._days.size, reading)]
        self._days = np.concatenate([self._days, *more])

    def _day(self, value: str) -> int:
        read = interpret(AttributeType.DATE, value)
        return day_of(read, self._zone).toordinal() - EPOCH_ORDINAL if isinstance(read, date) else NO_DAY

    def _read_numbers(self, values: Sequence[str], reading: Reading) -> None:
        for some in _unread(values, self._numbers.is_readable.size, reading):
            self._numbers.add(some, lambda value: interpret(AttributeType.NUMBER, value) is not None)

    def _holds_of_texts(self, asked: Compared, values: Sequence[str]) -> Array:
        more = [fold_text(value) for value in values[len(self._texts) :]]
        self._texts += more
        self._bytes_of_texts += sum(map(getsizeof, more)) + 8 * len(more)
        return np.fromiter(map(text_predicate(asked), self._texts), bool, len(self._texts))


class Values:
    """A column of codes, its dictionary, and what types made of it."""

    def __init__(self, dictionary: Dictionary, codes: Array) -> None:
        self.dictionary = dictionary
        self.codes = codes
        self._read: dict[tuple[AttributeType, tuple[str, ...], str], Read] = {}

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.dictionary.nbytes + sum(read.nbytes for read in self._read.values())

    def read_as(self, declared: AttributeType, allowed_values: Collection[str], zone: str) -> Read:
        key = (declared, tuple(sorted(allowed_values)), zone)
        if key not in self._read:
            # A key is read in one way at a time; what an earlier type made of it is of no more use.
            self._read = {key: Read(declared, allowed_values, zone)}
        return self._read[key]


def _unread(values: Sequence[str], known: int, reading: Reading) -> Iterator[Sequence[str]]:
    """The values from there on, some at a time, so that it can be said how far it is."""
    reading.total += len(values) - known
    for first in range(known, len(values), VALUES_AT_ONCE):
        some = [value.strip() for value in values[first : first + VALUES_AT_ONCE]]
        yield some
        reading.done += len(some)


def _mark(answer: bool | None) -> np.int8:
    if answer is None:
        return UNREADABLE
    return YES if answer else NO


def _held(asked: Compared, count: int, holds: Callable[[], Array]) -> Array:
    """Of values that can be read, all are set; whoever asks for more than that compares them."""
    if asked.comparison in {"is_set", "is_not_set"}:
        return np.full(count, asked.comparison == "is_set", np.int8)
    return holds().astype(np.int8)


def _holds_on_days(asked: Compared, days: Array, today: date, zone: ZoneInfo) -> Array:
    if asked.comparison == "anniversary_in_next_days":
        return _has_anniversary(days, today, asked.days or 1)
    low, high, is_within = span_of(asked, today, zone)
    held: Array = ((days >= number_of(low)) & (days <= number_of(high))) == is_within
    return held


def _has_anniversary(days: Array, today: date, count: int) -> Array:
    """By month and day: whether those of a date are among those of the days to come."""
    wanted = np.zeros(13 * 32, bool)
    for ahead in range(min(count, 367)):
        day = today + timedelta(days=ahead)
        wanted[day.month * 32 + day.day] = True
        if (day.month, day.day) == (FEBRUARY, LEAP_DAY - 1) and not calendar.isleap(day.year):
            # In this year there is no 29th, and the anniversary is the day before.
            wanted[FEBRUARY * 32 + LEAP_DAY] = True
    readable = np.where(days == NO_DAY, 0, days).astype("datetime64[D]")
    months = readable.astype("datetime64[M]")
    month = months.astype(np.int64) % 12 + 1
    day = (readable - months).astype(np.int64) + 1
    held: Array = wanted[month * 32 + day]
    return held
