"""Finds the page of a raw path: split on `/` first, then each segment is decoded once, so `a%2Fb` is one reference."""

import re
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from regulars.web.errors import MethodRefused, PageNotFound
from regulars.web.route import Page

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class PageRouter:
    """Literal segments win over placeholders, from the left."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._shapes: dict[tuple[bytes | None, ...], dict[str, Page]] = {}
        for page in sorted(pages, key=_literal_first):
            methods = self._shapes.setdefault(_shape(page), {})
            if page.method in methods:
                raise ValueError(f"Two pages answer {page.method} {page.address}.")
            methods[page.method] = page

    def serves(self, raw_path: bytes) -> bool:
        parts = raw_path.split(b"/")
        return any(_match(shape, parts) is not None for shape in self._shapes)

    def find(self, method: str, raw_path: bytes) -> tuple[Page, tuple[str, ...]]:
        """The page and its references; for a page of an organization the first is the slug."""
        parts = raw_path.split(b"/")
        wanted = "GET" if method == "HEAD" else method
        allowed: set[str] = set()
        for shape, methods in self._shapes.items():
            references = _match(shape, parts)
            if references is None:
                continue
            if wanted in methods:
                return methods[wanted], references
            allowed.update(methods)
        if allowed:
            raise MethodRefused(", ".join(sorted(allowed)))
        raise PageNotFound


def _shape(page: Page) -> tuple[bytes | None, ...]:
    return tuple(None if part.startswith("{") else part.encode() for part in page.address.split("/"))


def _literal_first(page: Page) -> tuple[bool, ...]:
    return tuple(part is None for part in _shape(page))


def _match(shape: tuple[bytes | None, ...], parts: list[bytes]) -> tuple[str, ...] | None:
    if len(shape) != len(parts):
        return None
    references = []
    for expected, part in zip(shape, parts, strict=True):
        if expected is not None:
            if expected != part:
                return None
            continue
        reference = _decode(part)
        if reference is None:
            return None
        references.append(reference)
    return tuple(references)


def _decode(part: bytes) -> str | None:
    """A segment as text; None where it cannot name anything."""
    if not part or _BAD_ESCAPE.search(part):
        return None
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
