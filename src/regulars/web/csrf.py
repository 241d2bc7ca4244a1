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
_OWN_SITES: Final = {"same-origin", "none"}


def token_for(secret: str) -> str:
    return hmac.digest(secret.encode(), b"form token", hashlib.sha256).hex()


def new_guest_secret() -> str:
    return secrets.token_urlsafe(32)


def is_cross_site(request: Request, *, public_url: str | None) -> bool:
    """Whether the browser's headers show that the form was sent from another site. Old browsers send no such headers;
    then only the token decides."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in _OWN_SITES:
        return True
    origin = request.headers.get("origin")
    if origin is None:
        return False
    own_hosts = {request.headers.get("host", "").lower(), urlsplit(public_url or "").netloc.lower()}
    # A sandboxed page sends the origin "null", which is never one of ours.
    return urlsplit(origin).netloc.lower() not in own_hosts - {""}


def is_valid(sent: str, expected: str) -> bool:
    return hmac.compare_digest(sent.encode("utf-8", "surrogatepass"), expected.encode())
