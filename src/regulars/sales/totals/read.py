"""What pages ask of the totals: days, stores, and the rhythm in which each store sends its tickets."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.kit.db import Tx
from regulars.sales.model import Currency
from regulars.sales.totals import queries
from regulars.sales.totals.fill import made_at
from regulars.sales.totals.model import (
    PerCurrency,
    Sums,
    add_up,
    expected_tickets,
    is_silent,
    one_sum,
    usual_rate,
)

USUAL_WEEKS: Final = 4


@dataclass(frozen=True, slots=True)
class Day:
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
    """That of the newest tickets; None where there are none."""
    return await queries.find_last_currency(tx, organization_id)


async def filled_until(tx: Tx, organization_id: UUID) -> datetime | None:
    """While older sales are still being counted: up to when they are; None once all are."""
    fill = await queries.find_fill(tx, organization_id)
    return None if fill is None or fill.due_at is None else made_at(fill.walked_to)


async def list_days(
    tx: Tx, organization_id: UUID, *, first: date, last: date, zone: ZoneInfo, store_id: UUID | None = None
) -> list[Day]:
    """Every day from the first to the last, also those without a ticket."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    rows = await queries.sum_by_day(tx, organization_id, [_whole_day(day, zone) for day in days], store_id=store_id)
    sums: dict[date, list[tuple[str, Sums]]] = defaultdict(list)
    for row in rows:
        one = one_sum(row.type, tickets=row.tickets, identified=row.identified_tickets, amount_cents=row.amount_cents)
        sums[row.day.astimezone(zone).date()].append((row.currency, one))
    return [Day(day, add_up(sums[day])) for day in days]


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
    rows = await queries.sum_by_store(
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
    """How each store sends today, against the same weekday of the last four weeks."""
    today = now.astimezone(zone).date()
    weeks = range(USUAL_WEEKS + 1)
    stretches = [_whole_day(today - timedelta(weeks=week), zone) for week in weeks]
    sent: dict[UUID, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    usual: dict[UUID, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for store_id, hour, tickets in await queries.list_hours(tx, organization_id, stretches, store_ids):
        local = hour.astimezone(zone)
        if local.date() == today:
            sent[store_id][local.hour] += tickets
        else:
            usual[store_id][local.hour] += tickets / USUAL_WEEKS
    last = await queries.find_last_received(tx, organization_id, store_ids)
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
