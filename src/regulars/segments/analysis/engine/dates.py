"""The days of many texts at once: in the usual spelling by arithmetic, all others by the catalog's own reading."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from regulars.segments.analysis.engine.blobs import Array
from regulars.segments.analysis.engine.days import DAY_S, Zone

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
