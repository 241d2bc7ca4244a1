"""Reads how much is credited to texts, by the month in which the texts were sent.

Whole months of a period are read from the table of months, a partial month at its start or end from the table of days.
"""

from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from regulars.attribution.model import ORIGIN_KINDS, Attributed, Origin
from regulars.kit.db import Tx

AttributedByCurrency = Mapping[str, Attributed]


class MonthSums(NamedTuple):
    """The sums of one origin and month in one currency; `month` is the first day of the month."""

    origin: Origin
    month: date
    currency: str
    sums: Attributed


async def read_sums_by_month(tx: Tx, organization_id: UUID, *, first: date, last: date) -> list[MonthSums]:
    """The sums of texts that were sent on these days, by origin; the steps of a journey are added up."""
    rows = await tx.fetch(
        """
        SELECT origin_kind, origin_id, '', day, currency, sum(tickets)::bigint, sum(gross_cents), sum(net_cents),
               sum(unmatched_cents)
        FROM attribution_months
        WHERE organization_id = %(organization_id)s AND day >= %(first)s AND day < %(until)s
        GROUP BY origin_kind, origin_id, day, currency
        HAVING sum(tickets) > 0
        UNION ALL
        SELECT t.origin_kind, t.origin_id, '', date_trunc('month', partial_month.first)::date, t.currency, t.tickets,
               t.gross_cents, t.net_cents, t.unmatched_cents
        FROM unnest((SELECT %(firsts)s::date[]), (SELECT %(lasts)s::date[])) AS partial_month (first, last)
        CROSS JOIN LATERAL (
            SELECT origin_kind, origin_id, currency, sum(tickets)::bigint AS tickets, sum(gross_cents) AS gross_cents,
                   sum(net_cents) AS net_cents, sum(unmatched_cents) AS unmatched_cents
            FROM attribution_totals
            WHERE organization_id = %(organization_id)s AND day BETWEEN partial_month.first AND partial_month.last
            GROUP BY origin_kind, origin_id, currency
            HAVING sum(tickets) > 0
        ) AS t
        """,
        {"organization_id": organization_id, **split_period(first, last)},
    )
    return _read_rows(rows)


async def read_sums_of(tx: Tx, organization_id: UUID, origin_id: UUID) -> list[MonthSums]:
    """All sums of one campaign or journey, by step."""
    rows = await tx.fetch(
        """
        SELECT origin_kind, origin_id, step, day, currency, tickets, gross_cents, net_cents, unmatched_cents
        FROM attribution_months
        WHERE organization_id = %s AND origin_id = %s AND tickets > 0
        """,
        (organization_id, origin_id),
    )
    return _read_rows(rows)


def split_period(first: date, last: date) -> dict[str, Any]:
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


def sum_by(rows: Iterable[MonthSums], key: Callable[[MonthSums], Any]) -> dict[Any, AttributedByCurrency]:
    """The sums for each key, in the order in which the keys first occur."""
    sums_by_key: defaultdict[Any, defaultdict[str, Attributed]] = defaultdict(lambda: defaultdict(Attributed))
    for row in rows:
        sums_by_key[key(row)][row.currency] += row.sums
    return {name: dict(sums) for name, sums in sums_by_key.items()}


def _read_rows(rows: Iterable[tuple[Any, ...]]) -> list[MonthSums]:
    return [
        MonthSums(Origin(ORIGIN_KINDS[kind], origin_id, step), month, currency, Attributed(*map(int, sums)))
        for kind, origin_id, step, month, currency, *sums in rows
    ]
