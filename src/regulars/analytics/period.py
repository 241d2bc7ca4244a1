"""The period of an analysis, the earlier period it is compared with, and their division into days, weeks or months."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Literal, get_args

Preset = Literal["7d", "month", "30d", "90d", "12m"]
Compare = Literal["weekdays", "before", "dates", "none"]
Unit = Literal["day", "week", "month"]

PRESETS: Final[tuple[Preset, ...]] = get_args(Preset)
COMPARES: Final[tuple[Compare, ...]] = get_args(Compare)
UNITS: Final[tuple[Unit, ...]] = get_args(Unit)
# The earliest day of a period; no ticket is older.
FIRST_DAY: Final = date(2000, 1, 1)
PERIOD_DAYS_MAX: Final = 5 * 366
# The longest period that can be shown by day.
BY_DAY_DAYS_MAX: Final = 2 * 366
# Whole weeks, so that a day is compared with the same weekday of the year before.
WEEKS_52: Final = timedelta(days=364)
_DAY: Final = timedelta(days=1)
# By default, a period of up to 62 days is shown by day, a period under a year by week, and others by month.
_DEFAULT_DAY_DAYS_MAX: Final = 62
_DEFAULT_MONTH_DAYS_MIN: Final = 364


@dataclass(frozen=True, slots=True)
class Period:
    """Calendar days in the organization's time zone, both included; `preset` is set if the period is relative to
    today."""

    first: date
    last: date
    preset: Preset | None = None

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    def __iter__(self) -> Iterator[date]:
        return (self.first + timedelta(days=number) for number in range(self.days))

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units into which the period can be divided without more rows than a page can show."""
        return tuple(unit for unit in UNITS if unit != "day" or self.days <= BY_DAY_DAYS_MAX)

    @property
    def default_unit(self) -> Unit:
        """The unit by which a page shows the period, unless the user chose another."""
        if self.days <= _DEFAULT_DAY_DAYS_MAX:
            return "day"
        return "week" if self.days < _DEFAULT_MONTH_DAYS_MIN else "month"


def preset_period(preset: Preset, today: date) -> Period:
    """A period that ends today."""
    first_days = {
        "7d": today - timedelta(days=6),
        "month": today.replace(day=1),
        "30d": today - timedelta(days=29),
        "90d": today - timedelta(days=89),
        "12m": year_before(today) + _DAY,
    }
    return Period(first_days[preset], today, preset)


def read_period(values: Mapping[str, str], today: date, *, default: Preset = "30d") -> tuple[Period, dict[str, str]]:
    """Read the period from the fields `period`, `from` and `to`; also return an error message for each invalid field.

    If `from` and `to` are the days of the preset, the period remains a preset, so that a form may send both.
    """
    requested = values.get("period", "")
    preset = requested if requested in PRESETS else default
    default_period = preset_period(preset, today)
    texts = {name: values.get(name, "").strip() for name in ("from", "to")}
    if not any(texts.values()):
        return default_period, {}
    faults: dict[str, str] = {}
    first = _read_day(texts["from"], "from", faults) or default_period.first
    last = _read_day(texts["to"], "to", faults) or default_period.last
    if not faults:
        faults = _find_faults(first, last, today)
    if faults or (first, last) == (default_period.first, default_period.last):
        return default_period, faults
    return Period(first, last), {}


def _find_faults(first: date, last: date, today: date) -> dict[str, str]:
    if last > today:
        return {"to": f"The period cannot end after today, {today.isoformat()}."}
    if first > last:
        return {"from": "The period begins after its end."}
    if first < FIRST_DAY:
        return {"from": f"The period cannot begin before {FIRST_DAY.isoformat()}."}
    days = (last - first).days + 1
    if days > PERIOD_DAYS_MAX:
        return {"from": f"A period has at most five years; this one has {days:,} days."}
    return {}


def _read_day(text: str, name: str, faults: dict[str, str]) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        faults[name] = "Enter a day such as 2026-11-16."
        return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The earlier `period` with which the days of `current` are compared."""

    kind: Compare
    period: Period
    current: Period

    @property
    def distance(self) -> str:
        """How much later a day is than the day it is compared with, as an interval of PostgreSQL."""
        days = WEEKS_52.days if self.kind == "weekdays" else self.current.days
        return "1 year" if self.kind == "dates" else f"{days} days"

    def compared_day_of(self, day: date) -> date | None:
        """The day with which a day is compared; None for 29 February, if the year before has no such day."""
        if self.kind == "weekdays":
            return day - WEEKS_52
        if self.kind == "before":
            return day - timedelta(days=self.current.days)
        return _same_date_before(day)

    def compared_part_of(self, part: Period) -> Period | None:
        """The days with which a part of `current` is compared; None if it is only 29 February, and the year before has
        no such day. A 29 February of the year before belongs to the day before it, so that the days of all parts are
        those of `period`."""
        first = self.period.first if part.first == self.current.first else self._compared_from(part.first)
        last = self.period.last if part.last == self.current.last else self._compared_from(part.last + _DAY) - _DAY
        return Period(first, last) if first <= last else None

    def _compared_from(self, day: date) -> date:
        # 29 February becomes 1 March.
        return self.compared_day_of(day) or date(day.year - 1, 3, 1)


def comparison_of(period: Period, kind: Compare) -> Comparison | None:
    if kind == "none":
        return None
    if kind == "dates":
        return Comparison(kind, Period(year_before(period.first), year_before(period.last)), period)
    distance = WEEKS_52 if kind == "weekdays" else timedelta(days=period.days)
    return Comparison(kind, Period(period.first - distance, period.last - distance), period)


def read_compare(value: str, *, default: Compare = "weekdays") -> Compare:
    return value if value in COMPARES else default


def year_before(day: date) -> date:
    """The same date of the year before; 28 February for the 29th."""
    return _same_date_before(day) or day.replace(year=day.year - 1, day=28)


def _same_date_before(day: date) -> date | None:
    try:
        return day.replace(year=day.year - 1)
    except ValueError:
        return None


def start_of_part(day: date, unit: Unit) -> date:
    """The first day of the week (Monday) or month that contains the day; by day, the day itself."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day


def parts_of(period: Period, unit: Unit) -> list[Period]:
    """The days, weeks or months of a period, oldest first; the first and the last may be incomplete."""
    firsts = sorted({max(start_of_part(day, unit), period.first) for day in period})
    lasts = [*(following - _DAY for following in firsts[1:]), period.last]
    return [Period(first, last) for first, last in zip(firsts, lasts, strict=True)]
