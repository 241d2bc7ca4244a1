"""Find the next time at which a phone number may be texted, by the hours, weekdays and holidays of its country.

A rule has hours for each weekday, in local time. A number that may be in several time zones can be texted when the
hours of all of them are open. All functions are pure; the time is a parameter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from regulars.texts.public_holidays import holidays_of
from regulars.texts.settings.model import WAIT_MAX, SendHoursRule

# The local days around today in which to look for open hours: enough for 96 hours in every time zone.
_DAYS_BEFORE: Final = 2
_DAYS_AHEAD: Final = 6
_DAY: Final = timedelta(days=1)


class Interval(NamedTuple):
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Opening:
    """The next time at which texts are allowed, and when they no longer are; None if not within 96 hours."""

    at: datetime | None
    closes_at: datetime | None

    def is_open(self, now: datetime) -> bool:
        return self.at is not None and self.at <= now


def next_opening(
    rule: SendHoursRule, country: str, zones: tuple[str, ...], now: datetime, *, region: str | None = None
) -> Opening:
    """The first time, not before `now`, at which the hours of all zones are open, and when the first zone closes."""
    for interval in _open_intervals(rule, country, region, zones, now.astimezone(UTC).date()):
        if interval.end > now:
            at = max(interval.start, now)
            return Opening(at, interval.end) if at - now <= WAIT_MAX else Opening(None, None)
    return Opening(None, None)


@lru_cache(maxsize=4_096)
def _open_intervals(
    rule: SendHoursRule, country: str, region: str | None, zones: tuple[str, ...], today: date
) -> tuple[Interval, ...]:
    """The intervals around `today` in which all zones are open, in order; cached for the day."""
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
    zone_info = ZoneInfo(zone)
    for days_ahead in range(-_DAYS_BEFORE, _DAYS_AHEAD + 1):
        day = today + days_ahead * _DAY
        window = rule.days[day.weekday()]
        if window is None or (not rule.on_holidays and day in holidays_of(country, day.year, region)):
            continue
        yield Interval(_to_utc(day, window.opens_minute, zone_info), _to_utc(day, window.closes_minute, zone_info))


def _to_utc(day: date, minute: int, zone_info: ZoneInfo) -> datetime:
    # Hours may end at minute 24 * 60, which is midnight of the next day.
    days, minute = divmod(minute, 24 * 60)
    local = datetime.combine(day + days * _DAY, time(minute // 60, minute % 60), zone_info)
    return local.astimezone(UTC)


def _intersect(left: list[Interval], right: list[Interval]) -> list[Interval]:
    overlaps = (Interval(max(a.start, b.start), min(a.end, b.end)) for a in left for b in right)
    return sorted(interval for interval in overlaps if interval.start < interval.end)
