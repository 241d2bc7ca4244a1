"""Reports on the totals: days, stores, and the usual number of tickets of each store per hour."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from psycopg.sql import SQL

from regulars.kit.db import Tx
from regulars.sales.model import Currency
from regulars.sales.totals.model import PerCurrency, Sums, expected_tickets, is_silent, usual_rate
from regulars.sales.totals.tables import DAILY, HOURLY, find_fill, made_at

USUAL_WEEKS: Final = 4


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
    """The time up to which older sales are counted, while a fill runs; None once all are done."""
    fills = [await find_fill(tx, organization_id, totals) for totals in (DAILY, HOURLY)]
    walked = [made_at(fill.walked_to) for fill in fills if fill is not None and fill.due_at is not None]
    return min(walked, default=None)


async def sum_days(
    tx: Tx, organization_id: UUID, *, first: date, last: date, store_ids: Sequence[UUID] | None = None
) -> dict[date, PerCurrency]:
    """Each day with a ticket from the first to the last, of some stores or of all."""
    return await _sum_by(tx, organization_id, SQL("day"), first=first, last=last, store_ids=store_ids)


async def sum_stores(
    tx: Tx, organization_id: UUID, *, first: date, last: date, store_ids: Sequence[UUID] | None = None
) -> dict[UUID, PerCurrency]:
    """Each store with a ticket from the first to the last day; of some stores, or of all."""
    return await _sum_by(tx, organization_id, SQL("store_id"), first=first, last=last, store_ids=store_ids)


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


async def _sum_by(
    tx: Tx, organization_id: UUID, key: SQL, *, first: date, last: date, store_ids: Sequence[UUID] | None
) -> dict[Any, PerCurrency]:
    """The sums of the days by one of the columns, in its order."""
    of_stores = SQL("") if store_ids is None else SQL("AND store_id = ANY(%(store_ids)s::uuid[])")
    rows = await tx.fetch(
        SQL("""
        SELECT {key}, currency, sum(purchases)::bigint, sum(returns)::bigint, sum(identified)::bigint,
               sum(gross_cents), sum(returned_cents), sum(discount_cents), sum(tax_cents), sum(units),
               sum(returned_units), sum(lines)::bigint
        FROM daily_totals
        WHERE organization_id = %(organization_id)s AND day >= %(first)s AND day <= %(last)s {of_stores}
        GROUP BY {key}, currency
        ORDER BY {key}, currency
        """).format(key=key, of_stores=of_stores),
        {
            "organization_id": organization_id,
            "first": first,
            "last": last,
            "store_ids": None if store_ids is None else list(store_ids),
        },
    )
    sums: dict[Any, dict[str, Sums]] = defaultdict(dict)
    for value, currency, *figures in rows:
        tickets, cents, quantities = figures[:3], map(int, figures[3:7]), figures[7:]
        sums[value][currency] = Sums(*tickets, *cents, *quantities)
    return {value: PerCurrency(by_currency) for value, by_currency in sums.items()}


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
