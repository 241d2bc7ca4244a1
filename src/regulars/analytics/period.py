"""The period of an analysis, the period it is compared with, and their parts: days, weeks or months."""

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
# The longest period that can be shown by day, in days.
BY_DAY_MAX: Final = 2 * 366
# 52 weeks, so that a day is compared with the same weekday of the year before.
WEEKDAYS_BACK: Final = timedelta(days=364)
_DAY: Final = timedelta(days=1)
# The longest periods that are usually shown by day, and by week.
_DAYS_MAX: Final = 62
_WEEKS_DAYS_MAX: Final = 364


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
        return tuple(unit for unit in UNITS if unit != "day" or self.days <= BY_DAY_MAX)

    @property
    def usual_unit(self) -> Unit:
        if self.days <= _DAYS_MAX:
            return "day"
        return "week" if self.days < _WEEKS_DAYS_MAX else "month"


def preset_period(preset: Preset, today: date) -> Period:
    """A period that ends today."""
    firsts = {
        "7d": today - timedelta(days=6),
        "month": today.replace(day=1),
        "30d": today - timedelta(days=29),
        "90d": today - timedelta(days=89),
        "12m": year_before(today) + _DAY,
    }
    return Period(firsts[preset], today, preset)


def read_period(values: Mapping[str, str], today: date, *, default: Preset = "30d") -> tuple[Period, dict[str, str]]:
    """The period of the fields `period`, `from` and `to`, and a sentence for each field that cannot be used.

    If `from` and `to` are the days of the preset, the period remains a preset, so that a form may send both.
    """
    requested = values.get("period", "")
    preset = requested if requested in PRESETS else default
    of_preset = preset_period(preset, today)
    texts = {name: values.get(name, "").strip() for name in ("from", "to")}
    if not any(texts.values()):
        return of_preset, {}
    faults: dict[str, str] = {}
    first = _read_day(texts["from"], "from", faults) or of_preset.first
    last = _read_day(texts["to"], "to", faults) or of_preset.last
    if not faults:
        faults = _find_faults(first, last, today)
    if faults or (first, last) == (of_preset.first, of_preset.last):
        return of_preset, faults
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
    """The period with which another one is compared, day by day."""

    kind: Compare
    period: Period
    # The other period, which is compared with `period`.
    of: Period

    def past_of(self, day: date) -> date | None:
        """The day with which a day is compared; None for 29 February in most years."""
        if self.kind == "weekdays":
            return day - WEEKDAYS_BACK
        if self.kind == "before":
            return day - timedelta(days=self.of.days)
        return _same_date_before(day)


def comparison_of(period: Period, kind: Compare) -> Comparison | None:
    if kind == "none":
        return None
    if kind == "dates":
        return Comparison(kind, Period(year_before(period.first), year_before(period.last)), period)
    back = WEEKDAYS_BACK if kind == "weekdays" else timedelta(days=period.days)
    return Comparison(kind, Period(period.first - back, period.last - back), period)


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
    """The first day of the week (Monday) or month that the day is in; by day, the day itself."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day


def parts_of(period: Period, unit: Unit) -> list[Period]:
    """The days, weeks or months of a period, oldest first; the first and the last may be incomplete."""
    firsts = sorted({max(start_of_part(day, unit), period.first) for day in period})
    lasts = [*(following - _DAY for following in firsts[1:]), period.last]
    return [Period(first, last) for first, last in zip(firsts, lasts, strict=True)]
