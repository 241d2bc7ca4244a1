"""When a number may be texted: hours, weekdays and public holidays of its country, in every zone it may lie in.

A rule says for each weekday from when to when, in local time. A number that may lie in several zones is open when all
of them are. Everything here is a pure function of the moment that is passed in.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import holidays

from regulars.messaging.rules import WAIT_MAX, Rule

_DAYS_AHEAD: Final = 6
_DAY: Final = timedelta(days=1)
_YEAR: Final = timedelta(days=365)

# Federal days only; the days of single states bind no sender of texts.
_COUNTRYWIDE_ONLY: Final = frozenset({"US"})
# A day that this share of a country's regions keeps counts as national: Switzerland has Good Friday in 24 of 26 cantons
# and in no law of the whole country.
_MOST_REGIONS: Final = 2 / 3


class Interval(NamedTuple):
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Opening:
    """`at` is the moment itself where it is open now; None where nothing opens in time."""

    at: datetime | None
    closes_at: datetime | None

    def is_open(self, moment: datetime) -> bool:
        return self.at is not None and self.at <= moment


def next_opening(
    rule: Rule, country: str, zones: tuple[str, ...], moment: datetime, *, region: str | None = None
) -> Opening:
    """The first moment from `moment` on at which all zones are open, and when that ends."""
    for interval in _open_intervals(rule, country, region, zones, moment.astimezone(UTC).date()):
        if interval.end > moment:
            at = max(interval.start, moment)
            return Opening(at, interval.end) if at - moment <= WAIT_MAX else Opening(None, None)
    return Opening(None, None)


@lru_cache(maxsize=4_096)
def holidays_of(country: str, year: int, region: str | None = None) -> dict[date, str]:
    """Public holidays in a year with their names: national ones, and those of the region where it is known.

    Where it is not, those that most regions keep: the patron saints of towns would close 86 working days in Italy.
    """
    try:
        national = holidays.country_holidays(country, years=year)
    except NotImplementedError:
        return {}
    found = dict(national.items())
    regions = () if country in _COUNTRYWIDE_ONLY else national.subdivisions
    if region in regions:
        found = {**holidays.country_holidays(country, subdiv=region, years=year), **found}
    elif regions:
        kept_by = Counter[date]()
        names: dict[date, str] = {}
        for each in regions:
            own = holidays.country_holidays(country, subdiv=each, years=year)
            kept_by.update(own.keys())
            names = {**own, **names}
        found |= {day: names[day] for day, count in kept_by.items() if count >= _MOST_REGIONS * len(regions)}
    return dict(sorted(found.items()))


def coming_holidays(country: str, today: date, region: str | None = None) -> list[tuple[date, str]]:
    """Those of the next twelve months with their names."""
    found = {**holidays_of(country, today.year, region), **holidays_of(country, today.year + 1, region)}
    return sorted((day, name) for day, name in found.items() if today <= day < today + _YEAR)


@lru_cache(maxsize=4_096)
def _open_intervals(
    rule: Rule, country: str, region: str | None, zones: tuple[str, ...], today: date
) -> tuple[Interval, ...]:
    """What is open in all zones around a day, in order; it depends on nothing that changes within that day."""
    if not zones:
        return ()
    common: list[Interval] | None = None
    for zone in zones:
        here = list(_local_intervals(rule, country, region, zone, today))
        common = here if common is None else _both(common, here)
    return tuple(common or ())


def _local_intervals(rule: Rule, country: str, region: str | None, zone: str, today: date) -> Iterable[Interval]:
    clock = ZoneInfo(zone)
    for ahead in range(-2, _DAYS_AHEAD + 1):
        day = today + ahead * _DAY
        window = rule.days[day.weekday()]
        if window is None or (not rule.on_holidays and day in holidays_of(country, day.year, region)):
            continue
        yield Interval(_moment(day, window.opens_minute, clock), _moment(day, window.closes_minute, clock))


def _moment(day: date, minute: int, clock: ZoneInfo) -> datetime:
    days, minute = divmod(minute, 24 * 60)
    local = datetime.combine(day + days * _DAY, time(minute // 60, minute % 60), clock)
    return local.astimezone(UTC)


def _both(left: list[Interval], right: list[Interval]) -> list[Interval]:
    met = (Interval(max(a.start, b.start), min(a.end, b.end)) for a in left for b in right)
    return sorted(interval for interval in met if interval.start < interval.end)
