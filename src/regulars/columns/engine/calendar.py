"""Converts arrays of timestamps, and of dates written as text, to calendar days in a time zone."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from regulars.columns.engine.encoding import Array

DAY_S: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
# For a range of up to this many days, about 41 years, the UTC offset of every day is looked up.
_LOOKED_UP_DAYS_MAX: Final = 15_000
# No zone changes its UTC offset twice within an hour.
_STEP_S: Final = 3600
# One day after the start of year 1 and one day before the end of year 9999, in Unix seconds.
_FIRST_S: Final = -62_135_596_800 + DAY_S
_LAST_S: Final = 253_402_300_799 - DAY_S


def number_of(day: date) -> int:
    """The number of days since 1970."""
    return day.toordinal() - EPOCH_ORDINAL


_FIRST_DAY, _LAST_DAY = number_of(date.min), number_of(date.max)


class Zone:
    """The UTC offsets of a zone, cached per day."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._zone = ZoneInfo(name)
        self._offsets: dict[int, list[tuple[int, int]]] = {}

    def days(self, seconds: Array) -> Array:
        """The number of the local day of each timestamp, counted from 1970.

        It is the UTC day, or the day before or after. A local day before year 1 or after year 9999 becomes the first or
        the last day, as in `in_zone`. Arrays use 32 bits where possible, since there are millions of timestamps.
        """
        if not seconds.size:
            return seconds.astype(np.int32)
        utc_days = seconds // DAY_S
        first, last = int(utc_days.min()), int(utc_days.max())
        offsets = np.zeros(last - first + 1, np.int32)
        days_with_change = []
        for index in self._occurring_days(utc_days, first, last):
            offsets_of_day = self._offsets_of_day(first + index)
            offsets[index] = offsets_of_day[0][1]
            if len(offsets_of_day) > 1:
                days_with_change.append((first + index, offsets_of_day))
        days: Array = utc_days.astype(np.int32)
        if offsets.any() or days_with_change:
            local_s = (seconds - utc_days * DAY_S).astype(np.int32) + offsets[utc_days - first]
            for day, offsets_of_day in days_with_change:
                indexes = np.flatnonzero(utc_days == day)
                for since, offset in offsets_of_day[1:]:
                    later = indexes[seconds[indexes] >= since]
                    local_s[later] = seconds[later] - day * DAY_S + offset
            days += local_s >= DAY_S
            days -= local_s < 0
            np.clip(days, _FIRST_DAY, _LAST_DAY, out=days)
        return days

    def _occurring_days(self, utc_days: Array, first: int, last: int) -> Iterable[int]:
        """The days that have a timestamp, counted from `first`; all days if the range is only a few decades."""
        if last - first < _LOOKED_UP_DAYS_MAX:
            return range(last - first + 1)
        present = np.zeros(last - first + 1, bool)
        present[utc_days - first] = True
        days: list[int] = np.flatnonzero(present).tolist()
        return days

    def _offsets_of_day(self, day: int) -> list[tuple[int, int]]:
        """The UTC offsets during a UTC day, each with the time from which it is valid."""
        offsets = self._offsets.get(day)
        if offsets is None:
            start, end = day * DAY_S, (day + 1) * DAY_S - 1
            offsets = [(start, self._offset(start))]
            if self._offset(end) != offsets[0][1]:
                before = start
                for second in (*range(start + _STEP_S, end, _STEP_S), end):
                    offset = self._offset(second)
                    if offset != offsets[-1][1]:
                        offsets.append((self._find_change(before, second), offset))
                    before = second
            self._offsets[day] = offsets
        return offsets

    def _find_change(self, before: int, after: int) -> int:
        """The second at which the offset changes, by bisection; historic changes are not on full hours."""
        offset = self._offset(after)
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (before, middle) if self._offset(middle) == offset else (middle, after)
        return after

    def _offset(self, second: int) -> int:
        time = _EPOCH + timedelta(seconds=min(max(second, _FIRST_S), _LAST_S))
        offset = time.astimezone(self._zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())


NO_DAY: Final = np.iinfo(np.int32).min
# The lengths of `2024-02-29`, `2024-02-29T23:15:00Z` and `2024-02-29T23:15:00+02:00`.
_DATE, _UTC_TIME, _TIME_WITH_OFFSET = 10, 20, 25
# `parse_unusual` parses dates in the first and last years, since a UTC offset may move them out of range.
_YEAR_MIN, _YEAR_MAX = 2, 9998
_MONTHS, _HOURS, _SIXTY = 12, 24, 60
# The first day of each month from year 1 to 9999, and of the month after that.
_FIRST_DAYS: Final = np.arange("0001-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int64)


class _SameLengthTexts(NamedTuple):
    """Strings of one length as digit values; `is_usual` marks the strings in the ISO 8601 format of that length."""

    digits: Array
    is_usual: Array

    def number(self, first: int, last: int) -> Array:
        """The number in the digits from `first` to before `last`; a string with another character there is not
        usual."""
        result = np.zeros(self.is_usual.size, np.int64)
        for position in range(first, last):
            digit = self.digits[:, position]
            np.logical_and(self.is_usual, digit <= 9, out=self.is_usual)  # noqa: PLR2004  # the largest digit
            result = result * 10 + digit
        return result

    def expect(self, position: int, letters: str) -> None:
        """A string with none of these letters at this position is not usual."""
        digits = self.digits[:, position]
        np.logical_and(self.is_usual, np.isin(digits, [_as_digit(letter) for letter in letters]), out=self.is_usual)

    def restrict(self, mask: Array) -> None:
        np.logical_and(self.is_usual, mask, out=self.is_usual)


def read_days(values: Sequence[str], zone: Zone, parse_unusual: Callable[[str], int]) -> Array:
    """The local day of each string, counted from 1970, or NO_DAY if it is not a date. `parse_unusual` parses strings
    that are not in one of the three formats above."""
    days = np.full(len(values), NO_DAY, np.int32)
    is_read = np.zeros(len(values), bool)
    lengths = np.fromiter(map(len, values), np.int32, len(values))
    for length in (_DATE, _UTC_TIME, _TIME_WITH_OFFSET):
        indexes = np.flatnonzero(lengths == length)
        if indexes.size:
            parsed, is_usual = _read_usual([values[index] for index in indexes.tolist()], length, zone)
            days[indexes[is_usual]] = parsed[is_usual]
            is_read[indexes] = is_usual
    for index in np.flatnonzero(~is_read).tolist():
        days[index] = parse_unusual(values[index])
    return days


def _read_usual(values: Sequence[str], length: int, zone: Zone) -> tuple[Array, Array]:
    # Each non-ASCII character becomes one question mark, so a string keeps its length.
    letters = np.frombuffer("".join(values).encode("ascii", "replace"), np.uint8).reshape(-1, length)
    texts = _SameLengthTexts(letters - np.uint8(ord("0")), np.ones(len(values), bool))
    days = _days_of(texts)
    if length == _DATE:
        return days, texts.is_usual
    seconds = days * DAY_S + _seconds_of(texts)
    if length == _UTC_TIME:
        texts.expect(19, "Z")
    else:
        seconds -= _offset(texts)
    usual = np.flatnonzero(texts.is_usual)
    days[usual] = zone.days(seconds[usual])
    return days, texts.is_usual


def _days_of(texts: _SameLengthTexts) -> Array:
    year, month, day = texts.number(0, 4), texts.number(5, 7), texts.number(8, 10)
    texts.expect(4, "-")
    texts.expect(7, "-")
    texts.restrict((year >= _YEAR_MIN) & (year <= _YEAR_MAX) & (month >= 1) & (month <= _MONTHS) & (day >= 1))
    month_index = np.where(texts.is_usual, (year - 1) * _MONTHS + month - 1, 0)
    first = _FIRST_DAYS[month_index]
    texts.restrict(day <= _FIRST_DAYS[month_index + 1] - first)
    days: Array = first + day - 1
    return days


def _seconds_of(texts: _SameLengthTexts) -> Array:
    """Seconds since midnight, in the UTC offset of the text."""
    hour, minute, second = texts.number(11, 13), texts.number(14, 16), texts.number(17, 19)
    texts.expect(10, "T")
    texts.expect(13, ":")
    texts.expect(16, ":")
    texts.restrict((hour < _HOURS) & (minute < _SIXTY) & (second < _SIXTY))
    seconds: Array = (hour * _SIXTY + minute) * _SIXTY + second
    return seconds


def _offset(texts: _SameLengthTexts) -> Array:
    hours, minutes = texts.number(20, 22), texts.number(23, 25)
    texts.expect(19, "+-")
    texts.expect(22, ":")
    texts.restrict((hours < _HOURS) & (minutes < _SIXTY))
    is_west = texts.digits[:, 19] == _as_digit("-")
    offset: Array = np.where(is_west, -1, 1) * (hours * _SIXTY + minutes) * _SIXTY
    return offset


def _as_digit(letter: str) -> int:
    """A character as a digit value; letters give values above 9."""
    return (ord(letter) - ord("0")) % 256
