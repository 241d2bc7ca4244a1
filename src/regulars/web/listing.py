"""Lists with filters and keyset pagination; the URL of the page holds filters, sort order and cursor.

A handler reads a `ListView` from the URL (`read_view`), reads the page at its cursor from a source (`read_page`), or
fetches the rows of `ListView.request` and cuts them to the page (`make_page`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final, Generic, TypeVar
from urllib.parse import urlencode

from regulars.kit.keyset import PageRequest, PageRows, Position
from regulars.kit.pagination import scope_of
from regulars.lists.sources import ByKey, Connect, Fetch, KeyCursors, Source, SourcePage, id_position
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
    secret: bytes = field(repr=False)
    # The cursors in the URL.
    after: str
    before: str

    @property
    def cursors(self) -> KeyCursors:
        return KeyCursors(self.secret, scope_of(f"page {self.name}", self.values, sort=self.sort))

    @property
    def request(self) -> PageRequest:
        return self.cursors.read(self.after, self.before, PAGE_ROWS)

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

    def by_key(self, fetch: Fetch[Row], position_of: Callable[[Row], Position] = id_position) -> ByKey[Row]:
        """The list as a source of rows in the order of an index."""
        return ByKey(self.cursors, fetch, position_of)


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
    return ListView(
        path=visit.url(path),
        name=name,
        filters=tuple(filters),
        values=values,
        sort=sort if sort in sorts else sorts[0],
        sorts=tuple(sorts),
        secret=visit.organization.secret,
        after=visit.query.get(AFTER, ""),
        before=visit.query.get(BEFORE, ""),
    )


def _read_day(text: str) -> date | None:
    """The day, if it is between `DAY_MIN` and `DAY_MAX`; else None."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if DAY_MIN <= day <= DAY_MAX else None


def make_page(
    view: ListView, fetched: PageRows[Row], position_of: Callable[[Row], Position] = id_position
) -> ListPage[Row]:
    """Make the page from the rows that were fetched for `view.request`."""
    return link_page(view, view.cursors.cut(fetched, view.request, position_of))


async def read_page(view: ListView, source: Source[Row], connect: Connect) -> ListPage[Row]:
    """Read the page at the cursor in the URL."""
    return link_page(view, await source.page(connect, after=view.after, before=view.before, limit=PAGE_ROWS))


def link_page(view: ListView, page: SourcePage[Row]) -> ListPage[Row]:
    return ListPage(
        page.rows,
        None if page.previous is None else view.url(before=page.previous),
        None if page.next is None else view.url(after=page.next),
        None if page.scanned is None else view.url(after=page.scanned),
    )
