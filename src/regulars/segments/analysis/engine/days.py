"""Calendar days in a zone, for many moments at once, by the same tables of zones as everywhere else."""

from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from regulars.segments.analysis.engine.blobs import Array

DAY_S: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
# Zones change their offset on a quarter of an hour of UTC.
_STEP_S: Final = 900
_FIRST_S: Final = -62_135_596_800 + DAY_S
_LAST_S: Final = 253_402_300_799 - DAY_S


def number_of(day: date) -> int:
    return day.toordinal() - EPOCH_ORDINAL


class Zone:
    """The offsets of a zone on the days that were asked for."""

    def __init__(self, name: str) -> None:
        self._zone = ZoneInfo(name)
        self._offsets: dict[int, list[tuple[int, int]]] = {}

    def days(self, seconds: Array) -> Array:
        """The number of the local day of each moment, counted from 1970."""
        if not seconds.size:
            return seconds.astype(np.int32)
        utc = seconds // DAY_S
        first, last = int(utc.min()), int(utc.max())
        present = np.zeros(last - first + 1, bool)
        present[utc - first] = True
        offsets = np.zeros(last - first + 1, np.int64)
        changing = []
        for place in np.flatnonzero(present).tolist():
            stretches = self._of_day(first + place)
            offsets[place] = stretches[0][1]
            if len(stretches) > 1:
                changing.append((first + place, stretches))
        local = seconds + offsets[utc - first]
        for day, stretches in changing:
            among = np.flatnonzero(utc == day)
            for since, offset in stretches[1:]:
                later = among[seconds[among] >= since]
                local[later] = seconds[later] + offset
        days: Array = (local // DAY_S).astype(np.int32)
        return days

    def _of_day(self, day: int) -> list[tuple[int, int]]:
        """The offsets of a day of UTC: each with the moment from which it counts."""
        known = self._offsets.get(day)
        if known is None:
            start = day * DAY_S
            known = [(start, self._offset(start))]
            if self._offset(start + DAY_S - 1) != known[0][1]:
                for moment in range(start, start + DAY_S, _STEP_S):
                    offset = self._offset(moment)
                    if offset != known[-1][1]:
                        known.append((moment, offset))
            self._offsets[day] = known
        return known

    def _offset(self, second: int) -> int:
        moment = _EPOCH + timedelta(seconds=min(max(second, _FIRST_S), _LAST_S))
        offset = moment.astimezone(self._zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())
