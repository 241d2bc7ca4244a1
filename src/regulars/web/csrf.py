"""Protection against cross-site request forgery.

Two checks, each sufficient alone: the `Sec-Fetch-Site` and `Origin` headers of the browser, and a token in the form
that is derived from the session's secret (or, before signing in, from a guest cookie).
"""

import hashlib
import hmac
import secrets
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

FIELD: Final = "_token"
HEADER: Final = "x-form-token"
_OWN: Final = {"same-origin", "none"}


def token_for(secret: str) -> str:
    return hmac.digest(secret.encode(), b"form token", hashlib.sha256).hex()


def new_guest_secret() -> str:
    return secrets.token_urlsafe(32)


def is_cross_site(request: Request, *, public_url: str | None) -> bool:
    """By the headers of the browser. Old browsers send none; then the token decides alone."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in _OWN:
        return True
    origin = request.headers.get("origin")
    if origin is None:
        return False
    own = {request.headers.get("host", "").lower(), urlsplit(public_url or "").netloc.lower()}
    # A sandboxed page sends "null", which is never an own origin.
    return urlsplit(origin).netloc.lower() not in own - {""}


def is_valid(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
