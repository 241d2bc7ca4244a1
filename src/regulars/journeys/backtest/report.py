"""The report of a backtest, which simulates a journey over past sales and consents. It counts by day the customers who
would have entered, the texts, and the reasons for no entry or no text."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.kit.clock import format_timestamp, in_zone
from regulars.kit.ids import PROFILE

NOTE: Final = (
    "It uses today's attributes, segments, phone numbers, blocked numbers and texting settings,"
    " and the consents and sales that were recorded at each moment."
)
# How many customers the report lists for each of its counts.
PEOPLE_MAX: Final = 50


@dataclass(slots=True)
class Day:
    entries: int = 0
    texts: int = 0
    # SMS parts of the texts that would be sent.
    parts: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    not_entered: Counter[str] = field(default_factory=Counter)

    def as_data(self) -> dict[str, Any]:
        return {
            "entries": self.entries,
            "texts": self.texts,
            "parts": self.parts,
            "skipped": sorted_counts(self.skipped),
            "not_entered": sorted_counts(self.not_entered),
        }


@dataclass(slots=True, kw_only=True)
class BacktestReport:
    version: int
    since: datetime
    until: datetime
    # The organization's time zone, which defines the days.
    zone: str
    by_day: dict[date, Day]
    # The number of runs by outcome, and the number of runs that still wait.
    outcomes: Counter[str] = field(default_factory=Counter)
    still_waiting: int = 0
    # How many sales or consents were simulated; with `is_cut` there were more than a backtest simulates.
    facts: int = 0
    is_cut: bool = False
    # The first customers of each count, by its name: `entries`, `texts`, or a reason for no entry or no text.
    people: dict[str, dict[UUID, None]] = field(default_factory=dict)

    @classmethod
    def begin(cls, version: int, *, since: datetime, until: datetime, zone: str) -> "BacktestReport":
        first, last = _local_day(since, zone), _local_day(until, zone)
        days = {first + timedelta(days=number): Day() for number in range((last - first).days + 1)}
        return cls(version=version, since=since, until=until, zone=zone, by_day=days)

    def day(self, at: datetime) -> Day:
        return self.by_day[_local_day(at, self.zone)]

    def add_person(self, count_name: str, profile_id: UUID) -> None:
        people = self.people.setdefault(count_name, {})
        if len(people) < PEOPLE_MAX:
            people[profile_id] = None

    @property
    def total(self) -> Day:
        total = Day()
        for day in self.by_day.values():
            total.entries += day.entries
            total.texts += day.texts
            total.parts += day.parts
            total.skipped += day.skipped
            total.not_entered += day.not_entered
        return total

    def as_data(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "since": format_timestamp(self.since),
            "until": format_timestamp(self.until),
            "time_zone": self.zone,
            "facts": self.facts,
            "is_cut": self.is_cut,
            **self.total.as_data(),
            "outcomes": sorted_counts(self.outcomes),
            "still_waiting": self.still_waiting,
            "by_day": [{"day": day.isoformat(), **counted.as_data()} for day, counted in self.by_day.items()],
            "people": {name: [PROFILE.encode(it) for it in people] for name, people in sorted(self.people.items())},
            "note": NOTE,
        }


def sorted_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _local_day(at: datetime, zone: str) -> date:
    return in_zone(at, ZoneInfo(zone)).date()
