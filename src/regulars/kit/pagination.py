"""Cursor pagination: a cursor is the signed position of the last item, bound to its list, filters and organization."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from regulars.kit.errors import InvalidCursor, invalid

PAGE_ITEMS_DEFAULT = 50
PAGE_ITEMS_MAX = 200
CURSOR_CHARACTERS_MAX = 1024
_SIGNATURE_BYTES = 16

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list; each module has a subclass, whose name is used in the OpenAPI document."""

    data: list[T]
    has_more: bool
    next_cursor: str | None


def read_limit(query: Mapping[str, str]) -> int:
    """Read the page size from the query: 50 by default, at most 200; raise if it is not an integer of at least 1."""
    text = query.get("limit")
    if text is None:
        return PAGE_ITEMS_DEFAULT
    if not (text.isascii() and text.isdigit()):
        raise invalid("limit", "WRONG_TYPE", "It must be a whole number of at least 1.")
    # Without leading zeros the length shows that a number is too large, so that a very long one is never parsed.
    digits = text.lstrip("0")
    if not digits:
        raise invalid("limit", "OUT_OF_RANGE", "It must be at least 1.")
    return PAGE_ITEMS_MAX if len(digits) > len(str(PAGE_ITEMS_MAX)) else min(int(digits), PAGE_ITEMS_MAX)


def write_cursor(secret: bytes, scope: str, position: tuple[str, ...]) -> str:
    """Sign the position of the last item. `scope` names the list and its filters; it is signed but not included."""
    payload = msgspec.json.encode(position)
    return base64.urlsafe_b64encode(_sign(secret, scope, payload) + payload).rstrip(b"=").decode()


def read_cursor(secret: bytes, scope: str, cursor: str) -> tuple[str, ...]:
    try:
        if len(cursor) > CURSOR_CHARACTERS_MAX:
            raise ValueError
        decoded = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = msgspec.json.decode(decoded[_SIGNATURE_BYTES:], type=tuple[str, ...])
        # Each position has exactly one cursor, so a valid cursor equals the one that we write for its position.
        if not hmac.compare_digest(write_cursor(secret, scope, position), cursor):
            raise ValueError
        return position
    except (ValueError, msgspec.MsgspecError):
        raise InvalidCursor("The cursor is not one this list gave out for these filters.") from None


def cut_page(
    rows: Sequence[T], limit: int, *, secret: bytes, scope: str, position_of: Callable[[T], tuple[str, ...]]
) -> tuple[Sequence[T], str | None]:
    """Return the page and the cursor of the next page, if there is one. The caller has fetched one row over `limit`."""
    page = rows[:limit]
    return page, write_cursor(secret, scope, position_of(page[-1])) if len(rows) > limit else None


def scope_of(name: str, query: Mapping[str, str], **resolved: Any) -> str:
    """Write the name of the list and its filters as one text, which a cursor is bound to. `resolved` are filters that
    are not in the query as text, such as ids; `limit` may change between pages."""
    filters = {key: value for key, value in query.items() if key not in {"limit", "cursor"}}
    return msgspec.json.encode([name, sorted(filters.items()), sorted(resolved.items())]).decode()


def _sign(secret: bytes, scope: str, payload: bytes) -> bytes:
    return hmac.digest(secret, b"cursor\0" + hashlib.sha256(scope.encode()).digest() + payload, "sha256")[
        :_SIGNATURE_BYTES
    ]
