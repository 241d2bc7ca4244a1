"""Calendar days of many moments and of many texts at once, in a time zone."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from regulars.segments.analysis.engine.encoding import Array

DAY_S: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_FEW_DAYS: Final = 15_000
# No zone changes its offset twice within an hour.
_STEP_S: Final = 3600
_FIRST_S: Final = -62_135_596_800 + DAY_S
_LAST_S: Final = 253_402_300_799 - DAY_S


def number_of(day: date) -> int:
    return day.toordinal() - EPOCH_ORDINAL


_FIRST_DAY, _LAST_DAY = number_of(date.min), number_of(date.max)


class Zone:
    """The offsets of a zone on the days that were asked for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._zone = ZoneInfo(name)
        self._offsets: dict[int, list[tuple[int, int]]] = {}

    def days(self, seconds: Array) -> Array:
        """The number of the local day of each moment, counted from 1970.

        That is the day of UTC, or the one before or after it, as the offset has it. A moment whose local day is in no
        year counts for the first or the last day there is, as in `in_zone`. All is done in as few bytes as the moments
        have: there are millions of them.
        """
        if not seconds.size:
            return seconds.astype(np.int32)
        utc = seconds // DAY_S
        first, last = int(utc.min()), int(utc.max())
        offsets = np.zeros(last - first + 1, np.int32)
        changing = []
        for place in self._present(utc, first, last):
            stretches = self._of_day(first + place)
            offsets[place] = stretches[0][1]
            if len(stretches) > 1:
                changing.append((first + place, stretches))
        days: Array = utc.astype(np.int32)
        if offsets.any() or changing:
            clock = (seconds - utc * DAY_S).astype(np.int32) + offsets[utc - first]
            for day, stretches in changing:
                among = np.flatnonzero(utc == day)
                for since, offset in stretches[1:]:
                    later = among[seconds[among] >= since]
                    clock[later] = seconds[later] - day * DAY_S + offset
            days += clock >= DAY_S
            days -= clock < 0
            np.clip(days, _FIRST_DAY, _LAST_DAY, out=days)
        return days

    def _present(self, utc: Array, first: int, last: int) -> Iterable[int]:
        """Which days there are, as places from the first; over a few decades it may as well be all of them."""
        if last - first < _FEW_DAYS:
            return range(last - first + 1)
        present = np.zeros(last - first + 1, bool)
        present[utc - first] = True
        places: list[int] = np.flatnonzero(present).tolist()
        return places

    def _of_day(self, day: int) -> list[tuple[int, int]]:
        """The offsets of a day of UTC: each with the moment from which it counts."""
        known = self._offsets.get(day)
        if known is None:
            start, end = day * DAY_S, (day + 1) * DAY_S - 1
            known = [(start, self._offset(start))]
            if self._offset(end) != known[0][1]:
                before = start
                for moment in (*range(start + _STEP_S, end, _STEP_S), end):
                    offset = self._offset(moment)
                    if offset != known[-1][1]:
                        known.append((self._change(before, moment), offset))
                    before = moment
            self._offsets[day] = known
        return known

    def _change(self, before: int, after: int) -> int:
        """The second at which the offset changes, between two moments; long ago it was no round one."""
        offset = self._offset(after)
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (before, middle) if self._offset(middle) == offset else (middle, after)
        return after

    def _offset(self, second: int) -> int:
        moment = _EPOCH + timedelta(seconds=min(max(second, _FIRST_S), _LAST_S))
        offset = moment.astimezone(self._zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())


NO_DAY: Final = np.iinfo(np.int32).min
# `2024-02-29`, `2024-02-29T23:15:00Z` and `2024-02-29T23:15:00+02:00`, by their lengths.
_DATE, _MOMENT, _WITH_OFFSET = 10, 20, 25
# The first and the last years are left to the catalog: a zone may lead out of them.
_YEAR_MIN, _YEAR_MAX = 2, 9998
_MONTHS, _HOURS, _SIXTY = 12, 24, 60
# The first day of every month there is, and of the one after.
_FIRST_DAYS: Final = np.arange("0001-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int64)


class _Part(NamedTuple):
    """Texts of one length as numbers, and which of them are spelled as their length says."""

    digits: Array
    is_usual: Array

    def number(self, first: int, last: int) -> Array:
        """The digits from `first` to before `last` as numbers; whoever has anything else there is not usual."""
        together = np.zeros(self.is_usual.size, np.int64)
        for place in range(first, last):
            digit = self.digits[:, place]
            np.logical_and(self.is_usual, digit <= 9, out=self.is_usual)  # noqa: PLR2004  # the largest digit
            together = together * 10 + digit
        return together

    def expect(self, place: int, letters: str) -> None:
        seen = self.digits[:, place]
        np.logical_and(
            self.is_usual, np.isin(seen, [(ord(letter) - 48) % 256 for letter in letters]), out=self.is_usual
        )

    def keep(self, some: Array) -> None:
        np.logical_and(self.is_usual, some, out=self.is_usual)


def read_days(values: Sequence[str], zone: Zone, otherwise: Callable[[str], int]) -> Array:
    """The number of the local day of each text, NO_DAY where it is none; `otherwise` reads one by one."""
    days = np.full(len(values), NO_DAY, np.int32)
    is_read = np.zeros(len(values), bool)
    lengths = np.fromiter(map(len, values), np.int32, len(values))
    for length in (_DATE, _MOMENT, _WITH_OFFSET):
        places = np.flatnonzero(lengths == length)
        if places.size:
            found, is_usual = _read([values[place] for place in places.tolist()], length, zone)
            days[places[is_usual]] = found[is_usual]
            is_read[places] = is_usual
    for place in np.flatnonzero(~is_read).tolist():
        days[place] = otherwise(values[place])
    return days


def _read(values: Sequence[str], length: int, zone: Zone) -> tuple[Array, Array]:
    # Whatever is no letter of ASCII becomes one question mark, so each text keeps its length.
    letters = np.frombuffer("".join(values).encode("ascii", "replace"), np.uint8).reshape(-1, length)
    part = _Part(letters - np.uint8(ord("0")), np.ones(len(values), bool))
    days = _days(part)
    if length == _DATE:
        return days, part.is_usual
    seconds = days * DAY_S + _seconds(part)
    if length == _MOMENT:
        part.expect(19, "Z")
    else:
        seconds -= _offset(part)
    usual = np.flatnonzero(part.is_usual)
    days[usual] = zone.days(seconds[usual])
    return days, part.is_usual


def _days(part: _Part) -> Array:
    year, month, day = part.number(0, 4), part.number(5, 7), part.number(8, 10)
    part.expect(4, "-")
    part.expect(7, "-")
    part.keep((year >= _YEAR_MIN) & (year <= _YEAR_MAX) & (month >= 1) & (month <= _MONTHS) & (day >= 1))
    place = np.where(part.is_usual, (year - 1) * _MONTHS + month - 1, 0)
    first = _FIRST_DAYS[place]
    part.keep(day <= _FIRST_DAYS[place + 1] - first)
    days: Array = first + day - 1
    return days


def _seconds(part: _Part) -> Array:
    """Those since midnight, by the clock that the text was written by."""
    hour, minute, second = part.number(11, 13), part.number(14, 16), part.number(17, 19)
    part.expect(10, "T")
    part.expect(13, ":")
    part.expect(16, ":")
    part.keep((hour < _HOURS) & (minute < _SIXTY) & (second < _SIXTY))
    seconds: Array = (hour * _SIXTY + minute) * _SIXTY + second
    return seconds


def _offset(part: _Part) -> Array:
    hours, minutes = part.number(20, 22), part.number(23, 25)
    part.expect(19, "+-")
    part.expect(22, ":")
    part.keep((hours < _HOURS) & (minutes < _SIXTY))
    is_west = part.digits[:, 19] == _as_digit("-")
    offset: Array = np.where(is_west, -1, 1) * (hours * _SIXTY + minutes) * _SIXTY
    return offset


def _as_digit(letter: str) -> int:
    """What a letter is among digits: a number beyond 9."""
    return (ord(letter) - ord("0")) % 256
