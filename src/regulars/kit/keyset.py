"""Keyset pagination: read rows in the order of an index, forward or backward from the position of the last page.

A statement has placeholders for the parts that depend on the request. `{and_filters}` is replaced by the filters that
have a value and `{and_after_position}` by the condition for the position; both begin with AND, or are empty.
`{ordered}` is replaced by the keys with their directions; `{direction}` (ASC or DESC) and `{comparison}` (> or <) are
for a statement that writes its ORDER BY itself. A subselect has the alias of its table, so that a placeholder means the
same inside and outside. A filter without an index searches a bounded number of rows (`scan`), so that a rare value
never makes a request read all rows of an organization.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, LiteralString, NamedTuple, TypeVar

from psycopg.sql import SQL, Composable, Placeholder

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx

T = TypeVar("T")
Other = TypeVar("Other")
Position = tuple[str, ...]
Values = Mapping[str, Any]
# SQL conditions by the name of their value; a condition whose value is None does not apply.
Filters = Mapping[str, LiteralString]
NO_FILTERS: Filters = {}


class PageRequest(NamedTuple):
    """Up to `limit` rows after a position, or before it in reverse order."""

    limit: int
    position: Position | None = None
    is_backward: bool = False


class Scan(NamedTuple):
    """The bounded number of rows of a table that a filter without an index searches; `indexed` are the filters that
    have an index."""

    table: LiteralString
    rows_max: int
    indexed: Filters = NO_FILTERS


class PageRows(list[T]):
    """The rows of one page, in the direction of the request."""

    # The position where a scan reached its limit of rows before the page was full.
    end_position: Position | None = None

    def replaced(self, rows: Iterable[Other]) -> "PageRows[Other]":
        """Return other rows for the same page, such as these rows with what was loaded for them."""
        others = PageRows(rows)
        others.end_position = self.end_position
        return others


class Keyset:
    """The order of a list: the expressions of its index, each with the function that parses its value from a cursor."""

    def __init__(self, keys: Mapping[LiteralString, Callable[[str], Any]], *, is_descending: bool = False) -> None:
        self._columns = [SQL(text) for text in keys]
        self._readers = list(keys.values())
        self._is_descending = is_descending

    async def fetch(
        self,
        tx: Tx,
        statement: SQL | LiteralString,
        page: PageRequest,
        values: Values,
        *,
        make: Callable[..., T],
        filters: Filters = NO_FILTERS,
        scan: Scan | None = None,
        **placeholders: Composable,
    ) -> PageRows[T]:
        """Fetch the page; the last clause of the statement is `LIMIT %(limit)s`. `make` converts a row.

        With a `scan`, fetch the matching rows among its rows. The inner query selects these by `{and_indexed_filters}`
        and `LIMIT %(scan_limit)s`; the outer query filters them by `{and_filters}`.
        """
        is_filtered = scan is not None and any(values[name] is not None for name in filters)
        clauses = self._clauses(page, values, filters)
        limits = {"limit": page.limit}
        if scan is not None:
            clauses |= {"table": SQL(scan.table), "and_indexed_filters": join_filters(values, scan.indexed)}
            limits["scan_limit"] = scan.rows_max if is_filtered else page.limit
        composed = (SQL(statement) if isinstance(statement, str) else statement).format(**clauses, **placeholders)
        rows = PageRows(make(*row) for row in await tx.fetch(composed, {**limits, **self._values(page, values)}))
        if scan is not None and is_filtered and len(rows) < page.limit and not page.is_backward:
            rows.end_position = await self._find_scan_end(tx, scan, page, values)
        return rows

    async def _find_scan_end(self, tx: Tx, scan: Scan, page: PageRequest, values: Values) -> Position | None:
        """Return the position of the last row that was scanned, or None if the list ends before."""
        statement = SQL(
            """
            SELECT {columns} FROM {table}
            WHERE organization_id = %(organization_id)s {and_indexed_filters} {and_after_position}
            ORDER BY {ordered}
            LIMIT 1 OFFSET %(skipped)s
            """
        ).format(
            columns=SQL(", ").join(self._columns),
            table=SQL(scan.table),
            and_indexed_filters=join_filters(values, scan.indexed),
            **self._clauses(page, values, NO_FILTERS),
        )
        rows = await tx.fetch(statement, {"skipped": scan.rows_max - 1, **self._values(page, values)})
        return tuple(_format(value) for value in rows[0]) if rows else None

    def _clauses(self, page: PageRequest, values: Values, filters: Filters) -> dict[str, Composable]:
        is_descending = self._is_descending != page.is_backward
        comparison, direction = SQL("<" if is_descending else ">"), SQL("DESC" if is_descending else "ASC")
        placeholders = [Placeholder(name) for name in self._names()]
        after_position = SQL("AND ({}) {} ({})").format(
            SQL(", ").join(self._columns), comparison, SQL(", ").join(placeholders)
        )
        return {
            "and_filters": join_filters(values, filters),
            "and_after_position": after_position if self._has_position(page) else SQL(""),
            "ordered": SQL(", ").join(SQL("{} {}").format(column, direction) for column in self._columns),
            "direction": direction,
            "comparison": comparison,
        }

    def _values(self, page: PageRequest, values: Values) -> dict[str, Any]:
        if page.position is None or not self._has_position(page):
            return dict(values)
        read = [reader(text) for reader, text in zip(self._readers, page.position, strict=True)]
        return {**values, **dict(zip(self._names(), read, strict=True))}

    def _has_position(self, page: PageRequest) -> bool:
        """Whether the position has the keys of this order. A position of another order has another number of keys and
        is ignored; a caller cannot forge one, because cursors are signed."""
        return page.position is not None and len(page.position) == len(self._columns)

    def _names(self) -> Iterable[str]:
        return (f"position_{number}" for number in range(len(self._columns)))


def page_of(
    rows: Sequence[T],
    page: PageRequest,
    position_of: Callable[[T], Position],
    *,
    fits: Callable[[T], bool] = lambda _row: True,
) -> PageRows[T]:
    """Return a page of a short list in memory, of the rows that `fits` accepts. If the row of the position no longer
    exists, the page starts at the beginning."""
    in_direction = list(rows[::-1] if page.is_backward else rows)
    start = next((index + 1 for index, row in enumerate(in_direction) if position_of(row) == page.position), 0)
    return PageRows([row for row in in_direction[start:] if fits(row)][: page.limit])


def join_filters(values: Values, filters: Filters) -> Composable:
    """Join the SQL conditions of the filters that have a value, each preceded by AND."""
    return SQL(" ").join(SQL("AND {}").format(SQL(text)) for name, text in filters.items() if values[name] is not None)


@asynccontextmanager
async def reading_in_index_order(tx: Tx, *, is_whole: bool = False) -> AsyncIterator[None]:
    """Make PostgreSQL's planner read in index order inside the block. Before the first ANALYZE it expects few rows of
    an organization, and would sort all of them. If the index has the whole order (`is_whole`), not even rows that are
    equal in its first columns are sorted."""
    settings = ["enable_bitmapscan", "enable_sort", *(["enable_incremental_sort"] if is_whole else [])]
    # Outside a transaction the settings would have no effect.
    async with tx.connection.transaction():
        await tx.fetch("SELECT set_config(setting, 'off', true) FROM unnest(%s::text[]) AS it (setting)", (settings,))
        yield
        await tx.fetch("SELECT set_config(setting, 'on', true) FROM unnest(%s::text[]) AS it (setting)", (settings,))


def _format(value: Any) -> str:
    return format_timestamp(value) if isinstance(value, datetime) else str(value)
