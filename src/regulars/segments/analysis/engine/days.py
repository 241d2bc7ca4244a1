"""Calendar days in a zone, for many moments at once, by the same tables of zones as everywhere else."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from regulars.segments.analysis.engine.blobs import Array

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
