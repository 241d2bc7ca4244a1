"""Lists with filters and keyset pagination; the URL of the page holds filters, sort order and cursor.

A handler reads a `ListView` from the URL (`read_view`), fetches the rows of `ListView.request`, and makes the page
with the links to the previous and next page (`make_page`). An export reads all pages (`read_all_rows`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from regulars.kit.db import Tx
from regulars.kit.errors import InvalidCursor
from regulars.kit.keyset import PageRequest, PageRows, Position
from regulars.kit.pagination import read_cursor, scope_of, write_cursor
from regulars.web.errors import BadFilter
from regulars.web.format import Format
from regulars.web.visit import Visit

PAGE_ROWS: Final = 50
# Rows that an export reads at a time.
EXPORT_ROWS: Final = 200
# Rows of a list are counted up to this number; pages then show "10,000+".
COUNT_MAX: Final = 10_000
AFTER: Final = "after"
BEFORE: Final = "before"
SORT: Final = "sort"
FILTER_CHARACTERS_MAX: Final = 255
# Kinds of filters that are shown neither as removable chips nor in the filter menu.
_NOT_CHIPS: Final = frozenset({"search", "hidden"})
# Dates in filters; midnight of each can be converted to every time zone.
DAY_MIN: Final = date(2000, 1, 1)
DAY_MAX: Final = date(9000, 1, 1)

T = TypeVar("T")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a list. With choices (value and label) it is a select, otherwise a text field."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...] = ()
    kind: str = "text"
    placeholder: str = ""
    characters_max: int = FILTER_CHARACTERS_MAX

    def label_of(self, value: str) -> str:
        return dict(self.choices).get(value, value)

    def fault(self, value: str) -> str | None:
        """The error message for an invalid value, or None."""
        if len(value) > self.characters_max:
            return f"“{self.label}” may have at most {self.characters_max} characters; this has {len(value)}."
        if self.choices and value not in dict(self.choices):
            return f"“{self.label}” has no choice “{value}”."
        if self.kind == "date" and _read_day(value) is None:
            return f"“{self.label}” needs a day such as 2026-11-16; “{value}” is not a day."
        return None


@dataclass(frozen=True, slots=True)
class Chip:
    """An active filter, and the URL without it."""

    label: str
    value: str
    remove_url: str


@dataclass(frozen=True, kw_only=True)
class ListView:
    """The filters, the sort order and the cursor in the URL of a list."""

    path: str
    name: str
    filters: tuple[Filter, ...]
    values: Mapping[str, str]
    sort: str
    sorts: tuple[str, ...]
    secret: bytes
    # Fetches one row more than a page shows, to know whether there is a next page.
    request: PageRequest = field(default=PageRequest(PAGE_ROWS + 1))

    @property
    def is_filtered(self) -> bool:
        return any(each.name in self.values for each in self.filters if each.kind != "hidden")

    @property
    def chips(self) -> list[Chip]:
        return [
            Chip(each.label, each.label_of(self.values[each.name]), self.url(without=each.name))
            for each in self.filters
            if each.name in self.values and each.kind not in _NOT_CHIPS
        ]

    @property
    def search(self) -> Filter | None:
        return next((each for each in self.filters if each.kind == "search"), None)

    @property
    def menu_filters(self) -> list[Filter]:
        """The filters in the filter menu."""
        return [each for each in self.filters if each.kind not in _NOT_CHIPS]

    @property
    def hidden(self) -> list[Filter]:
        """Filters in the URL that the form sends as hidden fields."""
        return [each for each in self.filters if each.kind == "hidden" and each.name in self.values]

    def value(self, name: str) -> str:
        return self.values.get(name, "")

    def day(self, name: str) -> date | None:
        """The day of a date filter."""
        return _read_day(self.value(name))

    def start_of(self, name: str, zone: tzinfo, *, days_later: int = 0) -> datetime | None:
        """The start of the day of a date filter, or of a later day."""
        day = self.day(name)
        return None if day is None else datetime.combine(day + timedelta(days=days_later), time(), zone)

    def url(self, *, without: str = "", path: str | None = None, **changed: str) -> str:
        """The URL of the first page of the list, without one filter and with changed ones."""
        query = {name: value for name, value in self.values.items() if name != without}
        if self.sort != self.sorts[0]:
            query[SORT] = self.sort
        query.update({name: value for name, value in changed.items() if value})
        return (path or self.path) + (f"?{urlencode(query)}" if query else "")

    def csv_url(self) -> str:
        """The URL of the whole list as a CSV file."""
        return self.url(path=f"{self.path}.csv")

    def url_from(self, direction: str, position: Position) -> str:
        """The URL of the page after a position, or before it."""
        return self.url(**{direction: write_cursor(self.secret, self.scope(), position)})

    def scope(self) -> str:
        return scope_of(f"page {self.name}", self.values, sort=self.sort)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """The rows of one page, and the URLs of the previous and next page."""

    rows: Sequence[T]
    previous_url: str | None = None
    next_url: str | None = None
    # The URL that continues a search which reached its limit of scanned rows before the page was full.
    search_more_url: str | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """The number of matching rows, counted up to `COUNT_MAX`: `count(*) FROM (SELECT 1 … LIMIT COUNT_MAX + 1)`."""

    number: int

    def with_noun(self, formats: Format, singular: str, plural: str | None = None) -> str:
        return formats.count(self.number, singular, plural, count_max=COUNT_MAX)

    def formatted(self, formats: Format) -> str:
        return f"{formats.number(COUNT_MAX)}+" if self.number > COUNT_MAX else formats.number(self.number)


def read_view(
    visit: Visit, name: str, path: str, *, filters: Sequence[Filter] = (), sorts: Sequence[str] = ("newest",)
) -> ListView:
    """Read the view from the URL. Raises `BadFilter` for an invalid filter: without it the list would show other
    rows than the user requested."""
    active = {each.name: (each, value) for each in filters if (value := visit.query.get(each.name, "").strip())}
    faults = [fault for each, value in active.values() if (fault := each.fault(value)) is not None]
    if faults:
        raise BadFilter(" ".join(faults), path=visit.url(path))
    values = {name: value for name, (_, value) in active.items()}
    sort = visit.query.get(SORT, "")
    view = ListView(
        path=visit.url(path),
        name=name,
        filters=tuple(filters),
        values=values,
        sort=sort if sort in sorts else sorts[0],
        sorts=tuple(sorts),
        secret=visit.organization.secret,
    )
    for direction in (AFTER, BEFORE):
        cursor = visit.query.get(direction)
        if cursor:
            try:
                position = read_cursor(visit.organization.secret, view.scope(), cursor)
            except InvalidCursor:
                continue
            return replace(view, request=PageRequest(view.request.limit, position, direction == BEFORE))
    return view


def _read_day(text: str) -> date | None:
    """The day, if it is between `DAY_MIN` and `DAY_MAX`; else None."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if DAY_MIN <= day <= DAY_MAX else None


def id_position(row: Any) -> Position:
    """The position of a row in a list by its id."""
    return (str(row.id),)


def make_page(
    view: ListView, fetched: PageRows[Row], position_of: Callable[[Row], Position] = id_position
) -> ListPage[Row]:
    """Make the page from the rows that were fetched for `view.request`."""
    is_backward, limit = view.request.is_backward, view.request.limit - 1
    has_more = len(fetched) > limit
    rows = fetched[:limit]
    if is_backward:
        rows.reverse()
    search_more_url = None if fetched.end_position is None else view.url_from(AFTER, fetched.end_position)
    if not rows:
        return ListPage((), search_more_url=search_more_url)
    has_previous = has_more if is_backward else view.request.position is not None
    return ListPage(
        rows,
        view.url_from(BEFORE, position_of(rows[0])) if has_previous else None,
        view.url_from(AFTER, position_of(rows[-1])) if is_backward or has_more else None,
        search_more_url,
    )


async def read_all_rows(
    connect: Callable[[], AbstractAsyncContextManager[Tx]],
    fetch: Callable[[Tx, PageRequest], Awaitable[PageRows[Row]]],
    position_of: Callable[[Row], Position] = id_position,
    *,
    limit: int = EXPORT_ROWS,
) -> AsyncIterator[Row]:
    """Read all rows of a list, page by page. Each page takes its own connection, so that a slow download does not hold
    one."""
    request = PageRequest(limit)
    while True:
        async with connect() as tx:
            fetched = await fetch(tx, request)
        for row in fetched:
            yield row
        if len(fetched) == limit:
            request = PageRequest(limit, position_of(fetched[-1]))
        elif fetched.end_position is not None:
            request = PageRequest(limit, fetched.end_position)
        else:
            return
