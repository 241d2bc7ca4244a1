"""Visits the pages of the application by following links, from those without parameters in their path."""

import html
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from regulars.kit.refusals import Refused
from regulars.web.route import Audience, Page
from regulars.web.router import PageRouter

if TYPE_CHECKING:
    # The benchmark imports this module without the libraries of the tests.
    from tests.support.visitor import Visitor

LINK = re.compile(r'(?:href|hx-get)="(/[^"#]*)')
ADDRESSES_PER_PAGE = 2


@dataclass(frozen=True)
class CrawledPage:
    """A requested page: its path and its response."""

    page: Page
    path: str
    status: int
    media_type: str
    text: str

    @property
    def is_html(self) -> bool:
        return self.media_type.startswith("text/html")

    @property
    def is_document(self) -> bool:
        """A full page, not a fragment that htmx swaps in."""
        return self.is_html and "<html" in self.text


def crawl(visitor: "Visitor", table: Sequence[Page], *, addresses: int = ADDRESSES_PER_PAGE) -> list[CrawledPage]:
    """Visits each page at a few of its addresses."""
    router = PageRouter(table)
    waiting = deque(_starts(visitor, table))
    known, counts, seen = set(waiting), dict.fromkeys(table, 0), []
    while waiting:
        path = waiting.popleft()
        page = _page_of(router, path)
        if page is None or counts[page] == addresses:
            continue
        counts[page] += 1
        answer = visitor.get(f"/{path}")
        media_type = answer.headers.get("content-type", "")
        seen.append(CrawledPage(page, path, answer.status_code, media_type, answer.text))
        for link in LINK.findall(answer.text):
            target = html.unescape(link)
            if target not in known:
                known.add(target)
                waiting.append(target)
    return seen


def unreached_pages(seen: Sequence[CrawledPage], table: Sequence[Page]) -> set[str]:
    """Paths of pages that the crawl did not reach."""
    found = {one.page for one in seen}
    return {page.address for page in table if page.method == "GET" and page not in found}


def _starts(visitor: "Visitor", table: Sequence[Page]) -> Iterator[str]:
    for page in table:
        path = page.address.replace("{slug}", visitor.who.slug)
        if page.method == "GET" and page.needs is not Audience.OPEN and "{" not in path:
            yield path


def _page_of(router: PageRouter, path: str) -> Page | None:
    try:
        return router.find("GET", urlsplit(path).path.encode())[0]
    except Refused:
        return None
