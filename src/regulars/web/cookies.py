"""The names of the cookies, and functions that set and delete them."""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from regulars.kit import public_address

# The prefix `__Host-` makes the browser require HTTPS, this host and the path `/`. Browsers refuse such a cookie over
# plain http, so plain http uses another name.
SESSION_HTTPS: Final = "__Host-regulars"
SESSION_HTTP: Final = "regulars-session"
# A random secret for visitors without a session; their form tokens are derived from it.
GUEST: Final = "regulars-guest"
THEME: Final = "regulars-theme"
# The organization that was visited last: account pages show its navigation.
LAST_ORGANIZATION: Final = "regulars-place"
# A message, and a secret such as a new API key, that the next page shows once.
FLASH: Final = "regulars-flash"
REVEAL: Final = "regulars-reveal"
# The text of the last search, which no address has.
SEARCH: Final = "regulars-search"
SEARCH_S: Final = 600
THEMES: Final = ("light", "dark")
THEME_S: Final = 365 * 24 * 3600


def session_name(*, is_https: bool) -> str:
    return SESSION_HTTPS if is_https else SESSION_HTTP


def guest_name(*, is_https: bool) -> str:
    return f"__Host-{GUEST}" if is_https else GUEST


def set_cookie(response: Response, name: str, value: str, *, is_https: bool, max_age_s: int | None = None) -> None:
    response.set_cookie(name, value, max_age=max_age_s, path="/", secure=is_https, httponly=True, samesite="lax")


def drop_cookie(response: Response, name: str, *, is_https: bool) -> None:
    response.delete_cookie(name, path="/", secure=is_https, httponly=True, samesite="lax")


def is_https(request: Request, public_url: str | None) -> bool:
    """Whether the browser uses https: the server or a trusted proxy says so, or the request is for the public address
    and that is https."""
    if request.url.scheme == "https":
        return True
    public = urlsplit(public_url or "")
    return public.scheme == "https" and request.headers.get("host", "").lower() == public.netloc.lower()


def is_loopback(request: Request) -> bool:
    """Whether the server runs on the browser's own machine, so that plain http is safe."""
    return public_address.is_loopback(request.url.hostname or "")
