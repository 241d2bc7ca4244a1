"""Helpers of HTTP clients for the response or failure of another system: `Retry-After`, dates, network errors."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp

# A longer wait is cut to a year: the current time plus the wait must still be a valid date.
_AHEAD_MAX: Final = timedelta(days=366)
_DIGITS_MAX: Final = 9


def read_retry_after(text: str | None, *, now: datetime) -> timedelta | None:
    """The wait from a `Retry-After` header (RFC 9110), in seconds or as a date; None for anything else."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return _AHEAD_MAX if len(text) > _DIGITS_MAX else min(timedelta(seconds=int(text)), _AHEAD_MAX)
    moment = read_http_date(text)
    return None if moment is None else min(max(timedelta(0), moment - now), _AHEAD_MAX)


def read_http_date(text: str | None) -> datetime | None:
    """The moment in an HTTP date; None if the text is not one."""
    if text is None:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC)


def describe_network_error(error: BaseException) -> str:
    """One sentence for users, who do not know the names of Python classes."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "The host's name could not be resolved."
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "The certificate of the host cannot be trusted."
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"The connection failed: {error.os_error.strerror or 'no reason was given'}."
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError | aiohttp.ClientOSError):
        return "The receiver closed the connection before it answered."
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.ClientPayloadError):
        return "The answer was not HTTP."
    if isinstance(error, TimeoutError):
        return "The answer did not come in time."
    if isinstance(error, OSError) and error.strerror:
        return f"The connection failed: {error.strerror}."
    return "The request could not be made."
