"""Find the route of a request by its method and raw path."""

from collections.abc import Sequence

from regulars.http.route import Route
from regulars.kit.errors import MethodNotAllowed, RouteNotFound
from regulars.kit.paths import PathPattern, match, parse_pattern


class Router:
    """Literal paths take precedence over placeholders, for each method separately: `POST …/batch` is a route of its
    own, and `GET …/batch` reads the object whose id is `batch`."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._literal: dict[bytes, dict[str, Route]] = {}
        self._patterns: dict[int, list[tuple[PathPattern, dict[str, Route]]]] = {}
        for route in routes:
            methods = self._methods_of(route.path)
            methods[route.method] = route
            if route.method == "GET":
                # HEAD gets the same response as GET; the HTTP server omits its body.
                methods["HEAD"] = route

    def _methods_of(self, path: str) -> dict[str, Route]:
        if "{" not in path:
            return self._literal.setdefault(path.encode(), {})
        pattern = parse_pattern(path)
        patterns = self._patterns.setdefault(len(pattern), [])
        for existing, methods in patterns:
            if existing == pattern:
                return methods
        patterns.append((pattern, {}))
        return patterns[-1][1]

    def find(self, method: str, raw_path: bytes) -> tuple[Route, tuple[str, ...]]:
        """Return the route and the ids in the path; raise 404 for an unknown path and 405 for another method."""
        literal = self._literal.get(raw_path)
        if literal is not None and method in literal:
            return literal[method], ()
        allowed: set[str] = set()
        parts = raw_path.split(b"/")
        for pattern, methods in self._patterns.get(len(parts), ()):
            references = match(pattern, parts)
            if references is None:
                continue
            if method in methods and (literal is None or methods[method].takes_external_ids):
                return methods[method], references
            allowed.update(methods)
        # If there is a literal path, only its methods are allowed, as in the OpenAPI document; the methods of a path
        # with a placeholder that also matches are not added.
        allow = ", ".join(sorted(literal or allowed))
        if allow:
            raise MethodNotAllowed(f"This route takes {allow}.", headers=((b"allow", allow.encode()),))
        raise RouteNotFound("Nothing is served at this path.")
