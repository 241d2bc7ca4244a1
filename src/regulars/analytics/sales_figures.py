"""Sums the sales of a period by hour, day, week, month, store or currency, for all pages and commands.

Days are in the organization's time zone. The caller's transaction makes all sums of one result consistent; a caller
that compares two periods reads both in one snapshot transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, cast
from uuid import UUID

from regulars.analytics.period import Period, Unit, parts_of
from regulars.kit.db import Tx
from regulars.sales.model import Currency
from regulars.sales.totals.model import PerCurrency, add_totals, subtract
from regulars.sales.totals.reports import (
    find_last_currency,
    sum_days,
    sum_hours,
    sum_late_hours,
    sum_stores,
    totals_counted_until,
)
from regulars.work.outbox import behind_since

# The hour, store or currency of a row; for days, weeks and months, its first day inside the period.
Key = Any


class By(StrEnum):
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    STORE = "store"
    CURRENCY = "currency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How current the sums are."""

    # All tickets received before this time are counted, unless `filled_until` is set.
    as_of: datetime
    # Whether tickets wait to be counted.
    is_behind: bool
    # Set while stored tickets are counted for the first time: those received before this time are counted.
    filled_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SalesFigures:
    """Sums of sales; the rows add up to the total.

    There is a row for every day, week, month and hour of the period, but only for stores and currencies that have a
    ticket.
    """

    rows: Mapping[Key, PerCurrency]
    total: PerCurrency
    progress: Progress


async def read_sales(
    tx: Tx, organization_id: UUID, *, first: date, last: date, by: By, store_ids: Sequence[UUID] | None = None
) -> SalesFigures:
    """Sum the sales from the first to the last day, both included, of some or all stores. By hour, sum only the first
    day."""
    rows: Mapping[Key, PerCurrency]
    match by:
        case By.HOUR:
            hours = await sum_hours(tx, organization_id, first, store_ids=store_ids)
            rows = {hour: hours.get(hour, PerCurrency()) for hour in range(24)}
        case By.STORE | By.CURRENCY:
            rows = {**await sum_stores(tx, organization_id, first=first, last=last, store_ids=store_ids)}
        case _:
            days = await sum_days(tx, organization_id, first=first, last=last, store_ids=store_ids)
            rows = {
                part.first: add_totals(days[day] for day in part if day in days)
                for part in parts_of(Period(first, last), cast(Unit, by.value))
            }
    total = add_totals(rows.values())
    if by is By.CURRENCY:
        rows = {currency: PerCurrency({currency: sums}) for currency, sums in total.by_net_sales()}
    return SalesFigures(rows=rows, total=total, progress=await read_progress(tx, organization_id))


async def read_until_hour(
    tx: Tx,
    organization_id: UUID,
    period: Period,
    hour: int,
    *,
    by: By,
    store_ids: Sequence[UUID] | None = None,
) -> dict[Key, PerCurrency]:
    """Sum the sales of a period by day or by store, up to this hour of its last day; for the comparison with a period
    that ends today, in this hour."""
    sales = await read_sales(tx, organization_id, first=period.first, last=period.last, by=by, store_ids=store_ids)
    late = await sum_late_hours(
        tx, organization_id, period.last, since=hour, by_store=by is By.STORE, store_ids=store_ids
    )
    return {key: subtract(row, late.get(key, PerCurrency())) for key, row in sales.rows.items()}


async def list_currencies(
    tx: Tx, organization_id: UUID, period: Period, *, store_ids: Sequence[UUID] | None = None
) -> list[Currency]:
    """The currencies of the sales of a period in these stores, largest net sales first; if nothing was sold, the
    currency of the newest tickets of all."""
    sales = await read_sales(
        tx, organization_id, first=period.first, last=period.last, by=By.CURRENCY, store_ids=store_ids
    )
    return list(sales.rows) or [await find_last_currency(tx, organization_id) or "EUR"]


async def find_comparable_stores(
    tx: Tx, organization_id: UUID, *periods: tuple[date, date], store_ids: Sequence[UUID] | None = None
) -> list[UUID]:
    """Find the stores with tickets in all of these periods, for a like-for-like comparison."""
    stores_by_period = [
        set(await sum_stores(tx, organization_id, first=first, last=last, store_ids=store_ids))
        for first, last in periods
    ]
    return sorted(set.intersection(*stores_by_period))


async def read_progress(tx: Tx, organization_id: UUID) -> Progress:
    # The time of the oldest recorded event that no listener has handled.
    oldest_waiting = await behind_since(tx, organization_id)
    return Progress(
        as_of=oldest_waiting or tx.now,
        is_behind=oldest_waiting is not None,
        filled_until=await totals_counted_until(tx, organization_id),
    )
