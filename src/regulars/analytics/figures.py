"""Answers queries about sales: from the totals in the caller's transaction, which makes all sums of one result
consistent, or from the columns, by the process that counts."""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property, partial
from typing import Any, cast
from uuid import UUID

from regulars.analytics.period import Comparison, Period, Unit, parts_of
from regulars.analytics.query import Query, QueryRefused
from regulars.analytics.segment_conditions import resolve_members
from regulars.columns import questions
from regulars.columns.client import Analysis
from regulars.columns.lifecycle import need_columns
from regulars.columns.questions import Dimension, SalesQuestion, SalesRow
from regulars.kit.db import Database, Tx
from regulars.sales.model import Currency
from regulars.sales.totals.model import PerCurrency, add_totals, add_up, subtract
from regulars.sales.totals.reports import TotalsKey, find_last_currency, sum_totals, totals_counted_until
from regulars.stores.find import find_countries
from regulars.work.outbox import behind_since

# The keys of a group: for each dimension a day, hour, store id, country, product code, value or segment id.
Keys = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How current the sums are."""

    # All tickets received before this time are counted, unless `filled_until` is set.
    as_of: datetime
    # Whether tickets wait to be counted.
    is_behind: bool = False
    # Set while stored tickets are counted for the first time: those received before this time are counted.
    filled_until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The sums of each group that has tickets, and those of the compared period by the same keys."""

    rows: Mapping[Keys, PerCurrency]
    compared: Mapping[Keys, PerCurrency] = field(default_factory=dict)
    # Sums of today's tickets in the current hour. Changes leave them out, since the compared day ends at the last full
    # hour.
    current_hour: Mapping[Keys, PerCurrency] = field(default_factory=dict)
    # Distinct customers who bought, by currency; only columns know them.
    customers: Mapping[Keys, Mapping[str, int]] = field(default_factory=dict)
    compared_customers: Mapping[Keys, Mapping[str, int]] = field(default_factory=dict)
    # The names of products by their codes.
    names: Mapping[str, str] = field(default_factory=dict)
    store_ids: Sequence[UUID] | None = None
    # Whether the compared period ends at the last full hour, because the period ends today.
    ends_at_full_hour: bool = False
    # Whether groups with few customers are left out.
    has_hidden: bool = False
    progress: Progress

    @cached_property
    def total(self) -> PerCurrency:
        return add_totals(self.rows.values())

    @cached_property
    def compared_total(self) -> PerCurrency:
        return add_totals(self.compared.values())

    def of(self, keys: Iterable[Any]) -> dict[Any, PerCurrency]:
        """The rows of these keys of a single dimension, also of keys without a ticket."""
        return {key: self.rows.get((key,), PerCurrency()) for key in keys}


async def answer_query(
    database: Database, analysis: Analysis, organization_id: UUID, query: Query, *, deadline_s: float
) -> Figures:
    query.check()
    if query.source == "totals":
        async with database.snapshot() as tx:
            return await read_totals(tx, organization_id, query)
    return await _read_columns(database, analysis, organization_id, query, deadline_s=deadline_s)


async def read_totals(tx: Tx, organization_id: UUID, query: Query) -> Figures:
    """Answer a query whose source is the totals. Its period and its comparison are read in the same transaction."""
    period, comparison = query.period, query.comparison
    keys = cast("list[TotalsKey]", [dimension.kind for dimension in query.by])
    countries = await find_countries(tx, organization_id) if "country" in keys else {}
    read = partial(
        sum_totals,
        tx,
        organization_id,
        keys,
        store_ids=query.store_ids,
        countries=countries,
        parts_from=period.first,
        groups_max=query.groups_max,
    )
    rows = await read(first=period.first, last=period.last)
    compared: Mapping[Keys, PerCurrency] = {}
    current_hour: Mapping[Keys, PerCurrency] = {}
    if comparison is not None:
        past, later = comparison.period, comparison.distance
        compared = await read(first=past.first, last=past.last, later=later)
        if query.until_hour is not None:
            since_hour = query.until_hour
            late = await read(first=past.last, last=past.last, later=later, since_hour=since_hour)
            compared = {key: subtract(row, late.get(key, PerCurrency())) for key, row in compared.items()}
            current_hour = await read(first=period.last, last=period.last, since_hour=since_hour)
    _check_groups(query, rows, compared)
    return Figures(
        rows=rows,
        compared=compared,
        current_hour=current_hour,
        store_ids=query.store_ids,
        ends_at_full_hour=query.until_hour is not None,
        progress=await read_progress(tx, organization_id),
    )


async def _read_columns(
    database: Database, analysis: Analysis, organization_id: UUID, query: Query, *, deadline_s: float
) -> Figures:
    # Where the segment is a dimension, its groups are answers of their own.
    position = next((number for number, it in enumerate(query.by) if it.kind == "segment"), None)
    if position is not None and not query.segment_ids:
        raise QueryRefused("Choose at least one segment.")
    async with database.transaction() as tx:
        await need_columns(tx, organization_id)
        segment_ids = query.segment_ids or (None,)
        members = [await resolve_members(tx, organization_id, segment_id) for segment_id in segment_ids]
        has_countries = any(it.kind == "country" for it in query.by)
        question = _to_question(query, await find_countries(tx, organization_id) if has_countries else {})
    rows: dict[Keys, SalesRow] = {}
    compared: dict[Keys, SalesRow] = {}
    # One after the other: the process answers an organization's questions one at a time.
    answers = [await analysis.answer(organization_id, it, question, deadline_s=deadline_s) for it in members]
    for segment_id, answer in zip(segment_ids, answers, strict=True):
        for found, added in ((rows, answer.rows), (compared, answer.compared)):
            for row in added:
                keys: list[Any] = [_decode(*it) for it in zip(question.by, row.keys, strict=True)]
                if position is not None:
                    keys.insert(position, segment_id)
                found[tuple(keys)] = row
    _check_groups(query, rows, compared)
    hidden = {key for found in (rows, compared) for key, row in found.items() if _is_small(row, query.customers_min)}
    for key in hidden:
        rows.pop(key, None)
        compared.pop(key, None)
    return Figures(
        rows={key: add_up(row.sums.items()) for key, row in rows.items()},
        compared={key: add_up(row.sums.items()) for key, row in compared.items()},
        customers={key: row.customers for key, row in rows.items()},
        compared_customers={key: row.customers for key, row in compared.items()},
        names=ChainMap(*(dict(answer.names) for answer in answers)),
        store_ids=query.store_ids,
        has_hidden=bool(hidden),
        progress=Progress(as_of=min(answer.as_of for answer in answers)),
    )


def _check_groups(query: Query, *rows: Mapping[Keys, object]) -> None:
    if query.groups_max is not None and max(map(len, rows)) > query.groups_max:
        raise QueryRefused(f"There are more than {query.groups_max:,} groups: narrow it, with fewer days or a filter.")


def _to_question(query: Query, countries: Mapping[UUID, str]) -> SalesQuestion:
    by = tuple(dimension for dimension in query.by if dimension.kind != "segment")
    comparison = query.comparison
    units = cast("set[Unit]", {dimension.kind for dimension in by} & {"day", "week", "month"})
    return SalesQuestion(
        store_ids=query.store_ids,
        period=_to_days(query.period),
        by=by,
        comparison=None if comparison is None else _to_days(comparison.period),
        compared_parts={} if comparison is None else {unit: compared_parts(comparison, unit) for unit in units},
        lines_in=query.currency if query.has_lines else None,
        filters=query.products,
        countries=countries,
        with_customers=query.counts_customers,
    )


def compared_parts(comparison: Comparison, unit: Unit) -> list[tuple[date, questions.Period]]:
    """The first day of each day, week or month of the period, and the days it is compared with."""
    parts = [(part.first, comparison.compared_part_of(part)) for part in parts_of(comparison.current, unit)]
    return [(first, _to_days(days)) for first, days in parts if days is not None]


def _to_days(period: Period) -> questions.Period:
    return questions.Period(period.first, period.last)


def _decode(dimension: Dimension, key: str | None) -> Any:
    if key is None:
        return None
    match dimension.kind:
        case "day" | "week" | "month":
            return date.fromisoformat(key)
        case "store":
            return UUID(key)
        case _:
            return key


def _is_small(row: SalesRow, customers_min: int) -> bool:
    """Whether a group has customers, but in some currency fewer than this."""
    return any(0 < count < customers_min for count in row.customers.values())


async def list_currencies(
    tx: Tx, organization_id: UUID, period: Period, *, store_ids: Sequence[UUID] | None = None
) -> list[Currency]:
    """The currencies of the sales of a period in these stores, largest net sales first; if nothing was sold, the
    currency of the newest tickets of all."""
    sold = await sum_totals(tx, organization_id, (), first=period.first, last=period.last, store_ids=store_ids)
    currencies = [cast("Currency", currency) for currency, _ in add_totals(sold.values()).by_net_sales()]
    return currencies or [await find_last_currency(tx, organization_id) or "EUR"]


async def find_comparable_stores(
    tx: Tx, organization_id: UUID, *periods: Period, store_ids: Sequence[UUID] | None = None
) -> tuple[UUID, ...]:
    """Find the stores with tickets in all of these periods, for a like-for-like comparison."""
    found = [
        await sum_totals(tx, organization_id, ("store",), first=it.first, last=it.last, store_ids=store_ids)
        for it in periods
    ]
    return tuple(sorted(set.intersection(*({store_id for (store_id,) in stores} for stores in found))))


async def read_progress(tx: Tx, organization_id: UUID) -> Progress:
    # The time of the oldest recorded event that no listener has handled.
    oldest_waiting = await behind_since(tx, organization_id)
    return Progress(
        as_of=oldest_waiting or tx.now,
        is_behind=oldest_waiting is not None,
        filled_until=await totals_counted_until(tx, organization_id),
    )
