"""Sums by the origin of texts, stored in two tables: one by day and one by month.

Whole months of a period are read from the table of months, a partial month at its start or end from the table of days.
"""

from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from operator import add
from typing import Any, Final, Generic, LiteralString, NamedTuple, TypeVar
from uuid import UUID

from regulars.attribution.model import ORIGIN_KINDS, Origin
from regulars.kit.arrays import Ids, Labels
from regulars.kit.columns import Columns, fill
from regulars.kit.db import Tx

Row = TypeVar("Row")

_ADD: Final[LiteralString] = """
    INSERT INTO {table} AS t ({key}, {columns})
    SELECT {values}, it.day::date, it.origin_kind, it.origin_id, it.step, it.{group}, {amounts}
    FROM {rows}
    ON CONFLICT (organization_id, day, origin_kind, origin_id, step, {group}) DO UPDATE SET {added}
"""
_READ: Final[LiteralString] = """
    SELECT origin_kind, origin_id, '', day, {group}, {sums}
    FROM {months}
    WHERE organization_id = %(organization_id)s AND day >= %(first)s AND day < %(until)s
    GROUP BY origin_kind, origin_id, day, {group}
    HAVING sum({counted}) > 0
    UNION ALL
    SELECT t.*
    FROM unnest((SELECT %(firsts)s::date[]), (SELECT %(lasts)s::date[])) AS partial_month (first, last)
    CROSS JOIN LATERAL (
        SELECT origin_kind, origin_id, '', date_trunc('month', partial_month.first)::date, {group}, {sums}
        FROM {days}
        WHERE organization_id = %(organization_id)s AND day BETWEEN partial_month.first AND partial_month.last
        GROUP BY origin_kind, origin_id, {group}
        HAVING sum({counted}) > 0
    ) AS t
"""
_READ_ORIGIN: Final[LiteralString] = """
    SELECT origin_kind, origin_id, step, day, {group}, {names} FROM {months}
    WHERE organization_id = %s AND origin_id = %s AND {counted} > 0
"""


class TotalKey(NamedTuple):
    """The key of a sum; `group` is the currency or the country."""

    day: date
    origin_kind: str
    origin_id: UUID
    step: str
    group: str


class MonthTables(Generic[Row]):
    """The tables `days` and `months`. `group` is the last column of their keys; `sums` are the names of the other
    columns, each with its type. The first of them counts: where it is 0, the row is not read."""

    def __init__(
        self,
        *,
        days: LiteralString,
        months: LiteralString,
        group: LiteralString,
        sums: Mapping[LiteralString, LiteralString],
        make: Callable[..., Row],
    ) -> None:
        """`make` makes a row from the origin, the first day of the month, the group and the sums."""
        # Sums travel as texts, because they may be larger than any integer type.
        further: dict[str, Any] = {group: Labels, **dict.fromkeys(sums, (Labels, str))}
        self._columns = Columns(day=(Labels, date.isoformat), origin_kind=Labels, origin_id=Ids, step=Labels, **further)
        add_sums = self._columns.write(
            _ADD,
            group=group,
            amounts=", ".join(["it." + name + "::" + kind for name, kind in sums.items()]),
            added=", ".join([name + " = t." + name + " + EXCLUDED." + name for name in sums]),
        )
        # `is_in_months` is always true: without it, workers of releases before the table of months would add to the
        # table of days only.
        self._add_to_days = fill(
            add_sums, table=days, key="organization_id, is_in_months", values="%(organization_id)s, true"
        )
        self._add_to_months = fill(add_sums, table=months, key="organization_id", values="%(organization_id)s")
        read: dict[str, LiteralString] = {
            "days": days,
            "months": months,
            "group": group,
            "counted": next(iter(sums)),
            "names": ", ".join(sums),
            "sums": ", ".join(["sum(" + name + ")::" + kind for name, kind in sums.items()]),
        }
        self._read = fill(_READ, **read)
        self._read_origin = fill(_READ_ORIGIN, **read)
        self._zeros = (0,) * len(sums)
        self._make = make

    async def add(self, tx: Tx, organization_id: UUID, differences: Iterable[tuple[TotalKey, Sequence[int]]]) -> None:
        """Add differences to the sums, in the order of their keys, so that two writers never deadlock."""
        days: defaultdict[TotalKey, Sequence[int]] = defaultdict(lambda: self._zeros)
        months = days.copy()
        for key, sums in differences:
            month = key._replace(day=key.day.replace(day=1))
            days[key] = [*map(add, days[key], sums)]
            months[month] = [*map(add, months[month], sums)]
        for statement, changes in ((self._add_to_days, days), (self._add_to_months, months)):
            rows = [(*key, *changes[key]) for key in sorted(changes) if any(changes[key])]
            if rows:
                await tx.execute(statement, {"organization_id": organization_id, **self._columns.of_tuples(rows)})

    async def read(self, tx: Tx, organization_id: UUID, *, first: date, last: date) -> list[Row]:
        """The sums of texts that were sent on these days, by origin and month; the steps of a journey are added up."""
        values = {"organization_id": organization_id, **_split_period(first, last)}
        return self._make_rows(await tx.fetch(self._read, values))

    async def read_origin(self, tx: Tx, organization_id: UUID, origin_id: UUID) -> list[Row]:
        """All sums of one campaign or journey, by step and month."""
        return self._make_rows(await tx.fetch(self._read_origin, (organization_id, origin_id)))

    def _make_rows(self, rows: Iterable[tuple[Any, ...]]) -> list[Row]:
        make_origin = cache(lambda kind, origin_id, step: Origin(ORIGIN_KINDS[kind], origin_id, step))
        return [
            self._make(make_origin(kind, origin_id, step), month, group, *map(int, sums))
            for kind, origin_id, step, month, group, *sums in rows
        ]


def _split_period(first: date, last: date) -> dict[str, Any]:
    """SQL parameters: whole months from `first` to before `until`, and the days of up to two partial months."""
    ends_month = last.day == _last_day(last).day
    partial_months = []
    if first.day > 1:
        partial_months.append((first, min(last, _last_day(first))))
    if not ends_month and not (partial_months and partial_months[0][1] == last):
        partial_months.append((last.replace(day=1), last))
    return {
        "first": first,
        "until": last if ends_month else last.replace(day=1),
        "firsts": [it[0] for it in partial_months],
        "lasts": [it[1] for it in partial_months],
    }


def _last_day(day: date) -> date:
    return day.replace(day=monthrange(day.year, day.month)[1])
