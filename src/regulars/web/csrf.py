"""A form counts only if it was sent from a page of ours to the same browser.

Two checks, each enough alone: the browser's own word where the request came from, and a token in the form that is made
from the session's secret (or, before signing in, from a guest cookie), which another site can neither read nor guess.
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


def comes_from_elsewhere(request: Request, *, public_url: str | None) -> bool:
    """What the browser says of the sender. Old browsers say nothing, and then the token decides alone."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in _OWN:
        return True
    origin = request.headers.get("origin")
    if origin is None:
        return False
    own = {request.headers.get("host", "").lower(), urlsplit(public_url or "").netloc.lower()}
    # A page in a sandbox says "null", which names nobody.
    return urlsplit(origin).netloc.lower() not in own - {""}


def is_right(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
