"""Find every page by following links, as a person would: from the pages without a reference to those with one."""

import html
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from regulars.web.errors import PageRefusal
from regulars.web.route import Audience, Page
from regulars.web.router import PageRouter

if TYPE_CHECKING:
    # The benchmark crawls too, without what only tests need.
    from tests.support.visitor import Visitor

LINK = re.compile(r'(?:href|hx-get)="(/[^"#]*)')
ADDRESSES_PER_PAGE = 2


@dataclass(frozen=True)
class Seen:
    """A page that was opened: its address on the server, and what came."""

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
        """A whole page, and not the part of one that is swapped in."""
        return self.is_html and "<html" in self.text


def crawl(visitor: "Visitor", table: Sequence[Page], *, addresses: int = ADDRESSES_PER_PAGE) -> list[Seen]:
    """Each page at a few of its addresses."""
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
        seen.append(Seen(page, path, answer.status_code, media_type, answer.text))
        for link in LINK.findall(answer.text):
            target = html.unescape(link)
            if target not in known:
                known.add(target)
                waiting.append(target)
    return seen


def unseen(seen: Sequence[Seen], table: Sequence[Page]) -> set[str]:
    """Addresses that no link led to."""
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
    except PageRefusal:
        return None
