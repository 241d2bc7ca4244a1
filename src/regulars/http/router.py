"""Routing on the raw path: split on `/` first, then percent-decode each reference once and strictly.

Decoding first, as most frameworks do, would let `a%2Fb` reach another resource than the one it names.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from regulars.http.route import Route
from regulars.kit.errors import MethodNotAllowed, RouteNotFound

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class Router:
    """Literal paths win over placeholders, method by method: `POST …/batch` is a route, `GET …/batch` a reference."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._literal: dict[bytes, dict[str, Route]] = {}
        self._patterns: dict[int, list[tuple[tuple[bytes | None, ...], dict[str, Route]]]] = {}
        for route in routes:
            methods = self._methods_of(route.path)
            methods[route.method] = route
            if route.method == "GET":
                # The same answer; the HTTP server leaves its body out.
                methods["HEAD"] = route

    def _methods_of(self, path: str) -> dict[str, Route]:
        if "{" not in path:
            return self._literal.setdefault(path.encode(), {})
        shape = tuple(None if part.startswith("{") else part.encode() for part in path.split("/"))
        patterns = self._patterns.setdefault(len(shape), [])
        for known, methods in patterns:
            if known == shape:
                return methods
        patterns.append((shape, {}))
        return patterns[-1][1]

    def find(self, method: str, raw_path: bytes) -> tuple[Route, tuple[str, ...]]:
        """The route and its references, or the refusal: 404 for a path nobody serves, 405 for another method."""
        literal = self._literal.get(raw_path)
        if literal is not None and method in literal:
            return literal[method], ()
        allowed = set(literal or ())
        parts = raw_path.split(b"/")
        for shape, methods in self._patterns.get(len(parts), ()):
            references = _match(shape, parts)
            if references is None:
                continue
            if method in methods and (literal is None or methods[method].takes_external_ids):
                return methods[method], references
            allowed.update(methods)
        if literal is not None:
            # The methods of the literal path are what the description lists for it; a reference that happens to be
            # spelled like it does not add to them.
            allowed = set(literal)
        if allowed:
            allow = ", ".join(sorted(allowed))
            raise MethodNotAllowed(f"This route takes {allow}.", headers=((b"allow", allow.encode()),))
        raise RouteNotFound("Nothing is served at this path.")


def _match(shape: tuple[bytes | None, ...], parts: list[bytes]) -> tuple[str, ...] | None:
    references = []
    for expected, part in zip(shape, parts, strict=True):
        if expected is None:
            reference = _decode(part)
            if reference is None:
                return None
            references.append(reference)
        elif expected != part:
            return None
    return tuple(references)


def _decode(part: bytes) -> str | None:
    """A path segment as text; None where it cannot name anything: empty, a broken escape, no UTF-8, or a NUL."""
    if not part or _BAD_ESCAPE.search(part):
        return None
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
