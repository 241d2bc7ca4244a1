"""Parse and format the API's timestamps (ISO 8601 in, UTC with milliseconds and a `Z` out; truncated, never rounded),
compute calendar days, and estimate the database's clock."""

import re
import time
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as clock_time

import msgspec

# A reading of the database's clock counts as fresh for this long.
CLOCK_READING_S_MAX = 1.0

_encode = msgspec.json.Encoder().encode

# The extended and the basic format. Seconds may be missing; the offset has one of three spellings in either format.
_ISO8601 = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
    r"|([0-9]{2})([0-9]{2})[Tt]([0-9]{2})([0-9]{2})(?:([0-9]{2})(?:[.,]([0-9]+))?)?)"
    r"(?:[Zz]|([+-])([0-9]{2})(?::?([0-9]{2}))?)",
)
# The format that most callers send. For texts in it, the standard library is as strict as the pattern above, and ten
# times as fast.
_COMMON_FORM = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_HOUR_MAX = 23
_MINUTE_MAX = 59
# 24:00:00, which ISO 8601 allows for midnight at the end of a day.
_END_OF_DAY = (_HOUR_MAX + 1, 0, 0, 0)
_LEAP_SECOND = 60
# Seconds and microseconds.
_LAST_MILLISECOND = (59, 999_000)


def parse_timestamp(text: str) -> datetime:
    """Read an ISO 8601 timestamp with an offset as UTC, truncated to the millisecond, or raise ValueError."""
    if _COMMON_FORM.fullmatch(text) is None:
        return _parse_any_timestamp(text)
    moment = datetime.fromisoformat(text)
    if text[-1] != "Z":
        moment = _convert_to_utc(moment)
    return truncate_to_milliseconds(moment) if moment.microsecond % 1000 else moment


def _convert_to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise _year_error() from None


def _year_error() -> ValueError:
    return ValueError("it is outside the years 0001 to 9999 in UTC")


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Convert to a time zone; a time near the year 1 or 9999 that would overflow is returned in UTC."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.astimezone(UTC)


def _parse_any_timestamp(text: str) -> datetime:
    match = _ISO8601.fullmatch(text)
    if match is None:
        raise ValueError("it is not an ISO 8601 date and time with Z or an offset")
    year, *fields, sign, offset_hours, offset_minutes = match.groups()
    month, day, hour, minute, seconds, fraction = fields[:6] if fields[0] is not None else fields[6:]
    shift = -_read_offset(sign, int(offset_hours or 0), int(offset_minutes or 0))
    clock = (int(hour), int(minute), int(seconds or 0), int((fraction or "0")[:3].ljust(3, "0")) * 1000)
    if clock == _END_OF_DAY and not (fraction or "").strip("0"):
        clock, shift = (0, 0, 0, 0), shift + timedelta(days=1)
    elif clock[2] == _LEAP_SECOND:
        # A leap second (60) becomes the last millisecond before it, because Python and PostgreSQL do not have it.
        clock = (*clock[:2], *_LAST_MILLISECOND)
    moment = datetime(int(year), int(month), int(day), *clock, tzinfo=UTC)
    try:
        return moment + shift
    except OverflowError:
        raise _year_error() from None


def _read_offset(sign: str | None, hours: int, minutes: int) -> timedelta:
    if hours > _HOUR_MAX or minutes > _MINUTE_MAX:
        raise ValueError("its offset is out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if sign == "-" else offset


def format_timestamp(moment: datetime) -> str:
    """Format a UTC time with milliseconds and a `Z`."""
    # msgspec's encoder is six times as fast as `isoformat`. It writes six digits of microseconds, or none for 0.
    written = _encode(moment)
    return f"{written[1:24].decode()}Z" if moment.microsecond else f"{written[1:20].decode()}.000Z"


def truncate_to_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def first_of_last_days(days: int, today: date) -> date:
    """Return the first day of the last N calendar days, today included."""
    return today - timedelta(days=days - 1)


def start_of_last_days(days: int, now: datetime, zone: tzinfo) -> datetime:
    """Return the start of the last N calendar days in a time zone."""
    return datetime.combine(first_of_last_days(days, in_zone(now, zone).date()), clock_time(), zone)


def is_in_future(moment: datetime, *, now: datetime, tolerance: timedelta) -> bool:
    """Whether the time is later than now by more than `tolerance`, because clocks of callers may run fast."""
    return moment - now > tolerance


# Seconds of a clock that never jumps, for durations and deadlines; unrelated to the time of day.
monotonic = time.monotonic


class DatabaseClock:
    """An estimate of the database's clock: its last reading plus the time since then."""

    def __init__(self) -> None:
        # How far the database's clock is ahead of this machine's clock.
        self._ahead = timedelta()
        self._queried_at = float("-inf")

    def set(self, now: datetime, *, queried_at: float) -> None:
        """Correct the estimate: the database read `now` at some time since `queried_at` (on the monotonic clock).

        An estimate that is possible with this reading stays, so that a slow response does not replace a more exact one.
        """
        ahead_min = now - datetime.now(UTC)
        ahead_max = ahead_min + timedelta(seconds=monotonic() - queried_at)
        self._ahead = min(max(self._ahead, ahead_min), ahead_max)
        self._queried_at = max(self._queried_at, queried_at)

    def is_fresh(self) -> bool:
        """Whether the database's clock was read within the last second."""
        return monotonic() - self._queried_at <= CLOCK_READING_S_MAX

    def estimate_now(self) -> datetime:
        return datetime.now(UTC) + self._ahead
