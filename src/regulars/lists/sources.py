"""Where the rows of a list come from, page by page. What is above the sources (pages, files, commands) knows only
`Source`; the sources differ in what a cursor names.

- `ByKey`: the position of a row in an index.
- `ByRank` (`columns/ranked_source.py`): the number of a customer in the order of the process that counts.
- `PageStart` (`kit/changes.py`): a time below the horizon of changes; a poll always gets a next cursor.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from regulars.kit.db import Tx
from regulars.kit.errors import InvalidCursor
from regulars.kit.keyset import PageRequest, PageRows, Position
from regulars.kit.pagination import read_cursor, write_cursor

Row = TypeVar("Row")
Connect = Callable[[], AbstractAsyncContextManager[Tx]]
Fetch = Callable[[Tx, PageRequest], Awaitable[PageRows[Row]]]


@dataclass(frozen=True, slots=True)
class SourcePage(Generic[Row]):
    """Rows, and the cursors of the pages around them. `scanned` is the cursor at which a search of a bounded number of
    rows stopped before the page was full."""

    rows: Sequence[Row] = ()
    previous: str | None = None
    next: str | None = None
    scanned: str | None = None


class Source(Protocol[Row]):
    async def page(self, connect: Connect, *, after: str = "", before: str = "", limit: int) -> SourcePage[Row]:
        """Return up to `limit` rows after a cursor, or before one; from the beginning without a cursor."""
        ...


def id_position(row: Any) -> Position:
    """The position of a row in a list by its id."""
    return (str(row.id),)


@dataclass(frozen=True, slots=True)
class KeyCursors:
    """Signed positions of rows. `scope` names the list and its filters; a cursor of another scope is ignored."""

    secret: bytes = field(repr=False)
    scope: str

    def read(self, after: str, before: str, limit: int) -> PageRequest:
        """The request for a page, and for one row more, which shows whether there is another page."""
        for cursor, is_backward in ((after, False), (before, True)):
            try:
                position = read_cursor(self.secret, self.scope, cursor) if cursor else None
            except InvalidCursor:
                continue
            if position is not None:
                return PageRequest(limit + 1, position, is_backward)
        return PageRequest(limit + 1)

    def cut(
        self, fetched: PageRows[Row], request: PageRequest, position_of: Callable[[Row], Position]
    ) -> SourcePage[Row]:
        """Cut the rows that were fetched for a request to its page."""
        is_backward, limit = request.is_backward, request.limit - 1
        has_more, rows = len(fetched) > limit, fetched[:limit]
        if is_backward:
            rows.reverse()
        scanned = None if fetched.end_position is None else self._write(fetched.end_position)
        if not rows:
            return SourcePage(scanned=scanned)
        has_previous = has_more if is_backward else request.position is not None
        previous = self._write(position_of(rows[0])) if has_previous else None
        following = self._write(position_of(rows[-1])) if is_backward or has_more else None
        return SourcePage(rows, previous, following, scanned)

    def _write(self, position: Position) -> str:
        return write_cursor(self.secret, self.scope, position)


@dataclass(frozen=True, slots=True)
class ByKey(Generic[Row]):
    """Rows in the order of an index, from a function that fetches them from a position on."""

    cursors: KeyCursors
    fetch: Fetch[Row]
    position_of: Callable[[Row], Position] = id_position

    async def page(self, connect: Connect, *, after: str = "", before: str = "", limit: int) -> SourcePage[Row]:
        request = self.cursors.read(after, before, limit)
        async with connect() as tx:
            fetched = await self.fetch(tx, request)
        return self.cursors.cut(fetched, request, self.position_of)


async def read_all_rows(
    source: Source[Row], connect: Connect, *, limit: int, first: SourcePage[Row] | None = None
) -> AsyncIterator[Row]:
    """Read all rows of a list, page by page, or those from its `first` page on. Each page takes its own connection, so
    that a slow download does not hold one."""
    page = first or await source.page(connect, limit=limit)
    while True:
        for row in page.rows:
            yield row
        cursor = page.next or page.scanned
        if cursor is None:
            return
        page = await source.page(connect, after=cursor, limit=limit)
