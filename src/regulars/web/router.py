"""Find the page whose path pattern matches the path of a request."""

from collections.abc import Sequence

from regulars.kit.paths import PathPattern, match, parse_pattern
from regulars.web.errors import MethodRefused, PageNotFound
from regulars.web.route import Page


class PageRouter:
    """The pages by their path patterns. Where two patterns match, the one with a literal segment further left wins over
    the one with a placeholder there."""

    def __init__(self, pages: Sequence[Page]) -> None:
        # By the number of segments and the pattern: a path is compared only with patterns of its length.
        self._pages: dict[int, dict[PathPattern, dict[str, Page]]] = {}
        for page in sorted(pages, key=_literal_first):
            pattern = parse_pattern(page.address)
            methods = self._pages.setdefault(len(pattern), {}).setdefault(pattern, {})
            if page.method in methods:
                raise ValueError(f"Two pages answer {page.method} {page.address}.")
            methods[page.method] = page

    def serves(self, raw_path: bytes) -> bool:
        """Whether a page has this path, for any method."""
        parts = raw_path.split(b"/")
        return any(match(pattern, parts) is not None for pattern in self._pages.get(len(parts), ()))

    def find(self, method: str, raw_path: bytes) -> tuple[Page, tuple[str, ...]]:
        """The page, and the path segments at its placeholders; for a page of an organization the first is the slug."""
        parts = raw_path.split(b"/")
        served_method = "GET" if method == "HEAD" else method
        allowed: set[str] = set()
        for pattern, methods in self._pages.get(len(parts), {}).items():
            references = match(pattern, parts)
            if references is None:
                continue
            if served_method in methods:
                return methods[served_method], references
            allowed.update(methods)
        if allowed:
            raise MethodRefused(", ".join(sorted(allowed)))
        raise PageNotFound


def _literal_first(page: Page) -> tuple[bool, ...]:
    return tuple(part is None for part in parse_pattern(page.address))
