"""What somebody we called says about when to come again: the `Retry-After` of RFC 9110."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

# Nobody is believed further ahead than a year: what is added to a moment must still be a moment.
_AHEAD_MAX: Final = timedelta(days=366)
_DIGITS_MAX: Final = 9


def read_retry_after(text: str | None, *, now: datetime) -> timedelta | None:
    """Seconds or a date; anything else says nothing."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return _AHEAD_MAX if len(text) > _DIGITS_MAX else min(timedelta(seconds=int(text)), _AHEAD_MAX)
    moment = read_http_date(text)
    return None if moment is None else min(max(timedelta(0), moment - now), _AHEAD_MAX)


def read_http_date(text: str | None) -> datetime | None:
    """The moment that a header or a field in its form names; None where it names none."""
    if text is None:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC)
