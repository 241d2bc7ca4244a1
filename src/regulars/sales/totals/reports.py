"""Read the totals of sales for the pages: sums by day, store or hour, and the activity of each store today."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from types import MappingProxyType
from typing import Any, Final, Literal, get_args
from uuid import UUID
from zoneinfo import ZoneInfo

from psycopg.sql import SQL, Composed

from regulars.kit.db import Tx
from regulars.sales.model import MILLION, Currency
from regulars.sales.totals.model import PerCurrency, Sums, expected_tickets, is_silent, usual_rate
from regulars.sales.totals.progress import find_fill, made_at

# The columns by which totals can be summed.
TotalsKey = Literal["hour", "day", "week", "month", "store", "country"]
_KEYS: Final[Mapping[TotalsKey, SQL]] = {
    "hour": SQL("hour"),
    "day": SQL("{day}"),
    "week": SQL("greatest(date_trunc('week', {day}::timestamp)::date, %(parts_from)s)"),
    "month": SQL("greatest(date_trunc('month', {day}::timestamp)::date, %(parts_from)s)"),
    "store": SQL("store_id"),
    "country": SQL("c.country"),
}
_COUNTRIES: Final = SQL(
    "LEFT JOIN unnest(%(stores)s::uuid[], %(countries)s::text[]) AS c (store, country) ON c.store = store_id"
)
# The usual number of tickets is the average of the same weekday in this many weeks.
USUAL_WEEKS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreActivity:
    """How many tickets a store sent in each hour of today, how many it usually sends in the hours of this weekday, and
    whether it has stopped sending (`is_silent`)."""

    store_id: UUID
    # By hour.
    today: Mapping[int, int]
    usual: Mapping[int, float]
    last_received_at: datetime | None
    expected_since_last: float

    @property
    def tickets_today(self) -> int:
        return sum(self.today.values())

    @property
    def usual_rate(self) -> int:
        return usual_rate(self.usual)

    @property
    def is_silent(self) -> bool:
        return is_silent(self.expected_since_last)


async def find_last_currency(tx: Tx, organization_id: UUID) -> Currency | None:
    """Return the currency of the newest tickets; None if there are none."""
    # `is_hour` is in ORDER BY, here and below, because the index begins with it.
    return await tx.fetch_value(
        """
        SELECT currency FROM sales_totals
        WHERE organization_id = %s AND NOT is_hour
        ORDER BY is_hour DESC, day DESC
        LIMIT 1
        """,
        (organization_id,),
    )


async def find_first_day(tx: Tx, organization_id: UUID, *, since: date) -> date | None:
    """Return the day of the oldest ticket since a day; None if there is none."""
    return await tx.fetch_value(
        """
        SELECT day FROM sales_totals
        WHERE organization_id = %s AND NOT is_hour AND day >= %s
        ORDER BY is_hour, day
        LIMIT 1
        """,
        (organization_id, since),
    )


async def find_last_day(tx: Tx, organization_id: UUID, *, since: date) -> date | None:
    """Return the day of the newest ticket since a day; None if there is none."""
    return await tx.fetch_value(
        """
        SELECT day FROM sales_totals
        WHERE organization_id = %s AND NOT is_hour AND day >= %s
        ORDER BY is_hour DESC, day DESC
        LIMIT 1
        """,
        (organization_id, since),
    )


async def totals_counted_until(tx: Tx, organization_id: UUID) -> datetime | None:
    """Return the time up to which the fill (`fill.py`) has added older sales to the totals; None if all are added."""
    fill = await find_fill(tx, organization_id)
    return None if fill is None or fill.due_at is None else made_at(fill.walked_to)


async def find_totals_zone(tx: Tx, organization_id: UUID) -> str | None:
    """Return the time zone in which the totals are counted; None before the first sale."""
    fill = await find_fill(tx, organization_id)
    return None if fill is None else fill.time_zone


_SUM: Final = SQL("""
    SELECT {keys}, sum(purchases)::bigint, sum(returns)::bigint, sum(identified)::bigint,
           sum(gross_cents), sum(returned_cents), sum(discount_cents), sum(tax_cents), sum(unit_millionths),
           sum(returned_unit_millionths), sum(lines)::bigint
    FROM sales_totals {countries}
    WHERE organization_id = %(organization_id)s AND day >= %(first)s AND day <= %(last)s AND {row_filter}
    GROUP BY {keys}
    ORDER BY {keys}
    LIMIT %(limit)s
""")


async def sum_totals(
    tx: Tx,
    organization_id: UUID,
    by: Sequence[TotalsKey],
    *,
    first: date,
    last: date,
    store_ids: Sequence[UUID] | None = None,
    countries: Mapping[UUID, str] = MappingProxyType({}),
    since_hour: int | None = None,
    parts_from: date | None = None,
    later: str = "",
    groups_max: int | None = None,
) -> dict[tuple[Any, ...], PerCurrency]:
    """Sum the tickets from the first to the last day, of these stores or of all, by these keys, in their order; with
    `since_hour`, only those from this hour of each day on.

    A week or month is named by its first day from `parts_from` on, and a day by the day that is the interval `later`
    after it. A result with more groups than `groups_max` may be cut off behind one group too many.
    """
    filters = [SQL("is_hour" if "hour" in by or since_hour is not None else "NOT is_hour")]
    filters += [] if since_hour is None else [SQL("hour >= %(since_hour)s")]
    filters += [] if store_ids is None else [SQL("store_id = ANY(%(store_ids)s::uuid[])")]
    rows = await tx.fetch(
        _summing(by, filters, is_moved=bool(later)),
        {
            "organization_id": organization_id,
            "first": first,
            "last": last,
            "since_hour": since_hour,
            "parts_from": parts_from or first,
            "later": later,
            "store_ids": None if store_ids is None else list(store_ids),
            "stores": list(countries),
            "countries": list(countries.values()),
            "limit": None if groups_max is None else (groups_max + 1) * len(get_args(Currency)),
        },
    )
    return _collect(rows, len(by))


def _summing(by: Sequence[TotalsKey], filters: Sequence[SQL], *, is_moved: bool) -> Composed:
    """The statement; if days are moved to those that they are compared with, by the interval `later`."""
    day = SQL("greatest((day + %(later)s::interval)::date, %(parts_from)s)" if is_moved else "day")
    return _SUM.format(
        keys=SQL(", ").join([*(_KEYS[key].format(day=day) for key in by), SQL("currency")]),
        countries=_COUNTRIES if "country" in by else SQL(""),
        row_filter=SQL(" AND ").join(filters),
    )


def _collect(rows: Iterable[tuple[Any, ...]], keys: int) -> dict[tuple[Any, ...], PerCurrency]:
    """The sums of rows that begin with so many keys and the currency."""
    sums: dict[tuple[Any, ...], dict[str, Sums]] = defaultdict(dict)
    for row in rows:
        values = list(row[keys + 1 :])
        values[3:7] = map(int, values[3:7])
        values[7:9] = [millionths / MILLION for millionths in values[7:9]]
        sums[row[:keys]][row[keys]] = Sums(*values)
    return {group: PerCurrency(by_currency) for group, by_currency in sums.items()}


async def read_store_activity(
    tx: Tx, organization_id: UUID, store_ids: list[UUID], *, now: datetime, zone: ZoneInfo
) -> dict[UUID, StoreActivity]:
    """Compare the tickets of each store today with the same weekday of the last four weeks."""
    today = now.astimezone(zone).date()
    days = [today - timedelta(weeks=week) for week in range(USUAL_WEEKS + 1)]
    sent_by_hour: dict[UUID, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    usual_by_hour: dict[UUID, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for store_id, day, hour, tickets in await list_hours(tx, organization_id, days, store_ids):
        if day == today:
            sent_by_hour[store_id][hour] += tickets
        else:
            usual_by_hour[store_id][hour] += tickets / USUAL_WEEKS
    last = await find_last_received(tx, organization_id, store_ids)
    return {
        store_id: StoreActivity(
            store_id=store_id,
            today=dict(sent_by_hour[store_id]),
            usual=dict(usual_by_hour[store_id]),
            last_received_at=last.get(store_id),
            expected_since_last=expected_tickets(
                usual_by_hour[store_id],
                since=max(last.get(store_id, _start_of(today, zone)), _start_of(today, zone)).astimezone(zone),
                until=now.astimezone(zone),
            ),
        )
        for store_id in store_ids
    }


def _start_of(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone)


async def list_hours(
    tx: Tx, organization_id: UUID, days: Sequence[date], store_ids: Sequence[UUID]
) -> list[tuple[UUID, date, int, int]]:
    """Return (store, day, hour, number of tickets) for these stores and days."""
    return await tx.fetch(
        """
        SELECT t.store_id, t.day, t.hour, sum(t.tickets)::bigint
        FROM unnest(%(days)s::date[]) AS given (day)
        CROSS JOIN LATERAL (
            SELECT store_id, day, hour, purchases + returns AS tickets
            FROM sales_totals
            WHERE organization_id = %(organization_id)s AND is_hour AND day = given.day
              AND store_id = ANY(%(store_ids)s::uuid[])
            OFFSET 0
        ) AS t
        GROUP BY t.store_id, t.day, t.hour
        """,
        {"organization_id": organization_id, "days": list(days), "store_ids": list(store_ids)},
    )


async def find_last_received(tx: Tx, organization_id: UUID, store_ids: Sequence[UUID]) -> dict[UUID, datetime]:
    """Return when the newest ticket of each store arrived; a store without tickets is not in the result."""
    return await tx.fetch_map(
        """
        SELECT wanted.store_id, last.created_at
        FROM unnest(%(store_ids)s::uuid[]) AS wanted (store_id)
        CROSS JOIN LATERAL (
            SELECT created_at
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND store_id = wanted.store_id
            ORDER BY id DESC
            LIMIT 1
        ) AS last
        """,
        {"organization_id": organization_id, "store_ids": list(store_ids)},
    )
