"""Lists: filters and the place in the list are in the address, pages are cut by key, and counting stops at a cap.

A handler reads a `ListView` from the query, asks its room for one row more than a page in the view's direction, and
hands what came to `cut`, which knows whether there is more on either side.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar
from urllib.parse import urlencode

from regulars.kit.errors import InvalidCursor
from regulars.kit.pagination import read_cursor, scope_of, write_cursor
from regulars.web.format import Format
from regulars.web.visit import Visit

PAGE_ROWS: Final = 50
COUNT_MAX: Final = 10_000
AFTER: Final = "after"
BEFORE: Final = "before"
SORT: Final = "sort"
FILTER_CHARACTERS_MAX: Final = 255

T = TypeVar("T")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Filter:
    """One thing a list can be narrowed by. With choices (value and words) it is a select, otherwise a field."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...] = ()
    kind: str = "text"
    placeholder: str = ""

    def shown(self, value: str) -> str:
        return dict(self.choices).get(value, value)


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in use: what it says, and the address without it."""

    label: str
    value: str
    remove_url: str


@dataclass(frozen=True, kw_only=True)
class ListView:
    """What of a list is looked at: the address, read."""

    path: str
    name: str
    filters: tuple[Filter, ...]
    values: Mapping[str, str]
    sort: str
    sorts: tuple[str, ...]
    position: tuple[str, ...] | None
    # A page before another is asked for in the reverse order and turned around.
    is_backward: bool
    secret: bytes
    limit: int = PAGE_ROWS

    @property
    def is_filtered(self) -> bool:
        return bool(self.values)

    @property
    def fetch_limit(self) -> int:
        """One row more than a page tells whether there is another."""
        return self.limit + 1

    @property
    def chips(self) -> list[Chip]:
        return [
            Chip(one.label, one.shown(self.values[one.name]), self.url(without=one.name))
            for one in self.filters
            if one.name in self.values and one.kind != "search"
        ]

    @property
    def search(self) -> Filter | None:
        return next((one for one in self.filters if one.kind == "search"), None)

    @property
    def narrowing(self) -> list[Filter]:
        """The filters behind the button."""
        return [one for one in self.filters if one.kind != "search"]

    def value(self, name: str) -> str:
        return self.values.get(name, "")

    def url(self, *, without: str = "", path: str | None = None, **changed: str) -> str:
        """The address of the same list with something changed; it starts from the list's beginning."""
        query = {name: value for name, value in self.values.items() if name != without}
        if self.sort != self.sorts[0]:
            query[SORT] = self.sort
        query.update({name: value for name, value in changed.items() if value})
        return (path or self.path) + (f"?{urlencode(query)}" if query else "")

    def csv_url(self) -> str:
        """The same list, whole, as a file."""
        return self.url(path=f"{self.path}.csv")

    def go_on_url(self, position: tuple[str, ...]) -> str:
        """The address that goes on after a position at which a bounded look ended without a row."""
        return self.url(**{AFTER: write_cursor(self.secret, self.scope(), position)})

    def at(self, position: tuple[str, ...]) -> "ListView":
        """The view that goes on after a position: how an export walks the list."""
        return replace(self, position=position, is_backward=False)

    def scope(self) -> str:
        return scope_of(f"page {self.name}", self.values, sort=self.sort)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """The rows of one page and the addresses of its neighbours."""

    rows: Sequence[T]
    previous_url: str | None
    next_url: str | None


@dataclass(frozen=True, slots=True)
class Count:
    """How many match, counted up to the cap: `SELECT count(*) FROM (SELECT 1 … LIMIT COUNT_MAX + 1)`."""

    number: int

    def shown(self, formats: Format) -> str:
        return f"{formats.number(COUNT_MAX)}+" if self.number > COUNT_MAX else formats.number(self.number)


def read_view(
    visit: Visit, name: str, path: str, *, filters: Sequence[Filter] = (), sorts: Sequence[str] = ("newest",)
) -> ListView:
    """The address of this visit as a view of the list. What does not fit is left out rather than refused: people edit
    addresses, and a list without the filter that they misspelled still says which filters hold."""
    values = {}
    for one in filters:
        value = visit.query.get(one.name, "").strip()
        if value and len(value) <= FILTER_CHARACTERS_MAX and (not one.choices or value in dict(one.choices)):
            values[one.name] = value
    sort = visit.query.get(SORT, "")
    view = ListView(
        path=visit.url(path),
        name=name,
        filters=tuple(filters),
        values=values,
        sort=sort if sort in sorts else sorts[0],
        sorts=tuple(sorts),
        position=None,
        is_backward=False,
        secret=visit.place.secret,
    )
    for direction in (AFTER, BEFORE):
        cursor = visit.query.get(direction)
        if cursor:
            try:
                position = read_cursor(visit.place.secret, view.scope(), cursor)
            except InvalidCursor:
                continue
            return replace(view, position=position, is_backward=direction == BEFORE)
    return view


def cut(view: ListView, found: Sequence[Row], position_of: Callable[[Row], tuple[str, ...]]) -> ListPage[Row]:
    """The page out of what was found in the view's direction with `fetch_limit`."""
    has_more = len(found) > view.limit
    rows = list(found[: view.limit])
    if view.is_backward:
        rows.reverse()

    def address(direction: str, row: Row) -> str:
        return view.url(**{direction: write_cursor(view.secret, view.scope(), position_of(row))})

    if not rows:
        return ListPage((), None, None)
    has_previous = has_more if view.is_backward else view.position is not None
    has_next = True if view.is_backward else has_more
    return ListPage(
        rows,
        address(BEFORE, rows[0]) if has_previous else None,
        address(AFTER, rows[-1]) if has_next else None,
    )
