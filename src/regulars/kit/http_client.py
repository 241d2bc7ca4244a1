"""Helpers for HTTP clients: parse the `Retry-After` header and HTTP dates, and describe network errors to users."""

import os
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from errno import errorcode
from typing import Final

import aiohttp

from regulars.kit.ssrf import AddressPolicy, CheckedResolver

# Longer waits are shortened to a year, so that now plus the wait is still a valid date.
_WAIT_MAX: Final = timedelta(days=366)
# A number of seconds with more digits is longer than `_WAIT_MAX`, and need not be parsed.
_DIGITS_MAX: Final = 9


def open_checked_session(
    policy: AddressPolicy, *, is_plain: bool, sockets_max: int, user_agent: str
) -> aiohttp.ClientSession:
    """Open a session for URLs that users choose: it connects only to addresses that the policy allows, and uses no
    proxy, cookie or cache. Call `policy.read_url` before each request; the caller limits the time."""
    connector = aiohttp.TCPConnector(
        resolver=CheckedResolver(policy, is_plain=is_plain),
        limit=sockets_max,
        use_dns_cache=False,
        happy_eyeballs_delay=None,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=None),
        headers={"user-agent": user_agent},
        skip_auto_headers=("accept-encoding",),
    )


def read_retry_after(text: str | None, *, now: datetime) -> timedelta | None:
    """Parse a `Retry-After` header (RFC 9110), which has seconds or a date; None for anything else."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return _WAIT_MAX if len(text) > _DIGITS_MAX else min(timedelta(seconds=int(text)), _WAIT_MAX)
    moment = read_http_date(text)
    return None if moment is None else min(max(timedelta(0), moment - now), _WAIT_MAX)


def read_http_date(text: str | None) -> datetime | None:
    """Parse an HTTP date; None if the text is not one."""
    if text is None:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC)


def describe_network_error(error: BaseException) -> str:
    """Describe the error in one sentence for users, who do not know the names of Python classes."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "The host's name could not be resolved."
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
        return "The certificate of the host cannot be trusted."
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return "The host does not answer with https there."
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"The connection failed: {_describe_os_error(error.os_error) or 'no reason was given'}."
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError | aiohttp.ClientOSError):
        return "The receiver closed the connection before it answered."
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.ClientPayloadError):
        return "The answer was not HTTP."
    if isinstance(error, TimeoutError):
        return "The answer did not come in time."
    if isinstance(error, OSError) and (reason := _describe_os_error(error)):
        return f"The connection failed: {reason}."
    return "The request could not be made."


def _describe_os_error(error: OSError) -> str | None:
    """The system's words, such as "Connection refused". Those of asyncio name a socket address."""
    return os.strerror(error.errno) if error.errno is not None and error.errno in errorcode else error.strerror
