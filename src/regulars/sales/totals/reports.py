"""Reports on the hourly totals: days, stores, and the usual number of tickets of each store per hour."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from psycopg.sql import SQL

from regulars.kit.db import Tx
from regulars.sales.model import Currency
from regulars.sales.totals.fill import find_fill, made_at
from regulars.sales.totals.model import PerCurrency, Sums, add_up, expected_tickets, is_silent, one_sum, usual_rate

USUAL_WEEKS: Final = 4


@dataclass(frozen=True, slots=True)
class DaySales:
    day: date
    total: PerCurrency


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """One store today: what it sent in each hour, what it usually sends, and whether it has gone silent."""

    store_id: UUID
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
    """The currency of the newest tickets; None if there are none."""
    rows = await tx.fetch(
        "SELECT currency FROM hourly_totals WHERE organization_id = %s ORDER BY hour DESC LIMIT 1", (organization_id,)
    )
    return rows[0][0] if rows else None


async def filled_until(tx: Tx, organization_id: UUID) -> datetime | None:
    """The time up to which older sales are counted, while the fill runs; None once it is done."""
    fill = await find_fill(tx, organization_id)
    return None if fill is None or fill.due_at is None else made_at(fill.walked_to)


async def list_days(
    tx: Tx, organization_id: UUID, *, first: date, last: date, zone: ZoneInfo, store_id: UUID | None = None
) -> list[DaySales]:
    """Every day from the first to the last, also those without a ticket."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    rows = await sum_by_day(tx, organization_id, [_whole_day(day, zone) for day in days], store_id=store_id)
    sums: dict[date, list[tuple[str, Sums]]] = defaultdict(list)
    for row in rows:
        one = one_sum(row.type, tickets=row.tickets, identified=row.identified_tickets, amount_cents=row.amount_cents)
        sums[row.day.astimezone(zone).date()].append((row.currency, one))
    return [DaySales(day, add_up(sums[day])) for day in days]


async def sum_stores(
    tx: Tx,
    organization_id: UUID,
    *,
    first: date,
    last: date,
    zone: ZoneInfo,
    store_ids: Sequence[UUID] | None = None,
) -> dict[UUID, PerCurrency]:
    """The sums of each store that had a ticket from the first to the last day; of some stores, or of all."""
    rows = await sum_by_store(
        tx,
        organization_id,
        start=start_of(first, zone),
        end=start_of(last + timedelta(days=1), zone),
        store_ids=store_ids,
    )
    sums: dict[UUID, list[tuple[str, Sums]]] = defaultdict(list)
    for row in rows:
        one = one_sum(row.type, tickets=row.tickets, identified=row.identified_tickets, amount_cents=row.amount_cents)
        sums[row.store_id].append((row.currency, one))
    return {store_id: add_up(parts) for store_id, parts in sums.items()}


async def read_rhythms(
    tx: Tx, organization_id: UUID, store_ids: list[UUID], *, now: datetime, zone: ZoneInfo
) -> dict[UUID, Rhythm]:
    """The tickets of each store today, against the same weekday of the last four weeks."""
    today = now.astimezone(zone).date()
    weeks = range(USUAL_WEEKS + 1)
    ranges = [_whole_day(today - timedelta(weeks=week), zone) for week in weeks]
    sent: dict[UUID, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    usual: dict[UUID, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for store_id, hour, tickets in await list_hours(tx, organization_id, ranges, store_ids):
        local = hour.astimezone(zone)
        if local.date() == today:
            sent[store_id][local.hour] += tickets
        else:
            usual[store_id][local.hour] += tickets / USUAL_WEEKS
    last = await find_last_received(tx, organization_id, store_ids)
    return {
        store_id: Rhythm(
            store_id=store_id,
            today=dict(sent[store_id]),
            usual=dict(usual[store_id]),
            last_received_at=last.get(store_id),
            expected_since_last=expected_tickets(
                usual[store_id],
                since=max(last.get(store_id, start_of(today, zone)), start_of(today, zone)).astimezone(zone),
                until=now.astimezone(zone),
            ),
        )
        for store_id in store_ids
    }


def start_of(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone)


def _whole_day(day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    return start_of(day, zone), start_of(day + timedelta(days=1), zone)


class DayRow(NamedTuple):
    day: datetime
    currency: str
    type: str
    tickets: int
    identified_tickets: int
    amount_cents: int


async def sum_by_day(
    tx: Tx, organization_id: UUID, days: Sequence[tuple[datetime, datetime]], *, store_id: UUID | None = None
) -> list[DayRow]:
    """Totals per day, currency and type. A day is given by its beginning and end, and summed by itself: to ask each row
    for its day, and to sort all of them, takes longer."""
    at_store = SQL("") if store_id is None else SQL("AND store_id = %(store_id)s")
    rows = await tx.fetch(
        SQL("""
        SELECT of_day.starts, t.currency, t.type, t.tickets, t.identified_tickets, t.amount_cents
        FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS of_day (starts, ends)
        CROSS JOIN LATERAL (
            SELECT currency, type, sum(tickets)::bigint AS tickets,
                   sum(identified_tickets)::bigint AS identified_tickets, sum(amount_cents) AS amount_cents
            FROM hourly_totals
            WHERE organization_id = %(organization_id)s AND hour >= of_day.starts AND hour < of_day.ends {at_store}
            GROUP BY currency, type
            OFFSET 0
        ) AS t
        ORDER BY of_day.starts, t.currency, t.type
        """).format(at_store=at_store),
        {
            "organization_id": organization_id,
            "starts": [start for start, _ in days],
            "ends": [end for _, end in days],
            "store_id": store_id,
        },
    )
    return [DayRow(row[0], row[1], row[2], row[3], row[4], int(row[5])) for row in rows]


class StoreRow(NamedTuple):
    store_id: UUID
    currency: str
    type: str
    tickets: int
    identified_tickets: int
    amount_cents: int


async def sum_by_store(
    tx: Tx, organization_id: UUID, *, start: datetime, end: datetime, store_ids: Sequence[UUID] | None = None
) -> list[StoreRow]:
    """Of all stores, or of some of them."""
    some = SQL("") if store_ids is None else SQL("AND store_id = ANY(%(store_ids)s::uuid[])")
    rows = await tx.fetch(
        SQL("""
        SELECT store_id, currency, type, sum(tickets)::bigint, sum(identified_tickets)::bigint, sum(amount_cents)
        FROM hourly_totals
        WHERE organization_id = %(organization_id)s AND hour >= %(start)s AND hour < %(end)s {some}
        GROUP BY store_id, currency, type
        """).format(some=some),
        {"organization_id": organization_id, "start": start, "end": end, "store_ids": store_ids and list(store_ids)},
    )
    return [StoreRow(row[0], row[1], row[2], row[3], row[4], int(row[5])) for row in rows]


async def list_hours(
    tx: Tx, organization_id: UUID, ranges: Sequence[tuple[datetime, datetime]], store_ids: Sequence[UUID]
) -> list[tuple[UUID, datetime, int]]:
    """Tickets of these stores in each hour of the ranges."""
    rows = await tx.fetch(
        """
        SELECT t.store_id, t.hour, sum(t.tickets)::bigint
        FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS given (starts, ends)
        CROSS JOIN LATERAL (
            SELECT store_id, hour, tickets
            FROM hourly_totals
            WHERE organization_id = %(organization_id)s AND hour >= given.starts AND hour < given.ends
              AND store_id = ANY(%(store_ids)s::uuid[])
            OFFSET 0
        ) AS t
        GROUP BY t.store_id, t.hour
        """,
        {
            "organization_id": organization_id,
            "starts": [start for start, _ in ranges],
            "ends": [end for _, end in ranges],
            "store_ids": list(store_ids),
        },
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def find_last_received(tx: Tx, organization_id: UUID, store_ids: Sequence[UUID]) -> dict[UUID, datetime]:
    """When the newest ticket of each store came in; a store without tickets is absent."""
    rows = await tx.fetch(
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
    return {row[0]: row[1] for row in rows}
