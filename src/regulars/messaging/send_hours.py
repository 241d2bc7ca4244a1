"""When a number may be texted: hours, weekdays and public holidays of its country, in all time zones in which it
may be.

A rule has hours for each weekday, in local time. A number that may be in several zones can be texted when it
is open in all of them. All functions here are pure; the time is a parameter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from regulars.messaging.public_holidays import holidays_of
from regulars.messaging.settings.model import WAIT_MAX, SendHoursRule

_DAYS_AHEAD: Final = 6
_DAY: Final = timedelta(days=1)


class Interval(NamedTuple):
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Opening:
    """`at` is the requested time if it is open then, otherwise the next opening; None if nothing opens within 96
    hours."""

    at: datetime | None
    closes_at: datetime | None

    def is_open(self, moment: datetime) -> bool:
        return self.at is not None and self.at <= moment


def next_opening(
    rule: SendHoursRule, country: str, zones: tuple[str, ...], moment: datetime, *, region: str | None = None
) -> Opening:
    """The first time, not before `moment`, at which all zones are open, and when they close."""
    for interval in _open_intervals(rule, country, region, zones, moment.astimezone(UTC).date()):
        if interval.end > moment:
            at = max(interval.start, moment)
            return Opening(at, interval.end) if at - moment <= WAIT_MAX else Opening(None, None)
    return Opening(None, None)


@lru_cache(maxsize=4_096)
def _open_intervals(
    rule: SendHoursRule, country: str, region: str | None, zones: tuple[str, ...], today: date
) -> tuple[Interval, ...]:
    """The intervals around a day in which all zones are open, in order. The result is the same for the whole day, so it
    is cached."""
    if not zones:
        return ()
    common: list[Interval] | None = None
    for zone in zones:
        local = list(_local_intervals(rule, country, region, zone, today))
        common = local if common is None else _intersect(common, local)
    return tuple(common or ())


def _local_intervals(
    rule: SendHoursRule, country: str, region: str | None, zone: str, today: date
) -> Iterable[Interval]:
    clock = ZoneInfo(zone)
    for ahead in range(-2, _DAYS_AHEAD + 1):
        day = today + ahead * _DAY
        window = rule.days[day.weekday()]
        if window is None or (not rule.on_holidays and day in holidays_of(country, day.year, region)):
            continue
        yield Interval(_time_of(day, window.opens_minute, clock), _time_of(day, window.closes_minute, clock))


def _time_of(day: date, minute: int, clock: ZoneInfo) -> datetime:
    days, minute = divmod(minute, 24 * 60)
    local = datetime.combine(day + days * _DAY, time(minute // 60, minute % 60), clock)
    return local.astimezone(UTC)


def _intersect(left: list[Interval], right: list[Interval]) -> list[Interval]:
    overlaps = (Interval(max(a.start, b.start), min(a.end, b.end)) for a in left for b in right)
    return sorted(interval for interval in overlaps if interval.start < interval.end)
