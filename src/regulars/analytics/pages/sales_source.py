"""Loads the sales of the period that a user analyses, and of the period it is compared with.

Sums of all customers come from stored daily totals; for a segment, the analysis process counts them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from regulars.analytics.pages.answers import PAGE_WAIT_S, AnalysisResult, await_answer, to_question_period
from regulars.analytics.pages.filters import AnalysisView
from regulars.analytics.sales_figures import By, find_comparable_stores, read_sales, read_until_hour
from regulars.analytics.segment_conditions import resolve_members
from regulars.columns.client import DEADLINE_S, Analysis
from regulars.columns.lifecycle import need_columns
from regulars.columns.protocol import SegmentQuery
from regulars.columns.questions import SalesQuestion, SalesRow
from regulars.kit.db import Tx
from regulars.sales.totals.model import PerCurrency, add_totals, add_up
from regulars.sales.totals.reports import sum_late_hours
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSales:
    """Sales by day or by store, and the sales of the compared period by its own days or stores."""

    rows: Mapping[Any, PerCurrency]
    compared: Mapping[Any, PerCurrency]
    total: PerCurrency
    compared_total: PerCurrency
    # Sums of today's tickets in the current hour, by the keys of `rows`. Changes leave them out, since the compared day
    # ends at the last full hour.
    current_hour: Mapping[Any, PerCurrency] = field(default_factory=dict)
    # Whether the compared period ends at the last full hour, because the period ends today.
    ends_at_full_hour: bool = False
    # The 24 hours of a period of one day; a segment has none.
    hours: Sequence[PerCurrency] = ()
    # The counted stores: those that the user chose, or those with tickets in both periods; None means all.
    store_ids: Sequence[UUID] | None
    as_of: datetime
    # Set while stored tickets are counted for the first time: those received before this time are counted.
    backfilled_until: datetime | None = None
    # Set while new tickets wait to be counted: those received before this time are counted.
    counted_until: datetime | None = None


class SalesSource:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def load(
        self, visit: Visit, view: AnalysisView, by: By, *, is_export: bool = False
    ) -> AnalysisResult[ComparedSales]:
        """Load the sales by day or by store. An export waits for the analysis process up to the deadline of a request,
        a page only briefly."""
        async with visit.database.transaction() as tx:
            # Also for sums that need no columns: from here users go on to customers and products.
            await need_columns(tx, visit.organization_id)
        if view.segment is None:
            async with visit.database.snapshot() as tx:
                return AnalysisResult(await _read_totals(tx, visit, view, by))
        async with visit.database.reading() as tx:
            query = await resolve_members(tx, visit.organization_id, view.segment_id)
            store_ids = await _find_store_ids(tx, visit.organization_id, view)
        deadline_s = DEADLINE_S if is_export else PAGE_WAIT_S
        return await await_answer(
            self._request_sales(visit.organization_id, view, query, by=by, store_ids=store_ids, deadline_s=deadline_s)
        )

    async def _request_sales(
        self,
        organization_id: UUID,
        view: AnalysisView,
        query: SegmentQuery,
        *,
        by: By,
        store_ids: tuple[UUID, ...] | None,
        deadline_s: float,
    ) -> ComparedSales:
        comparison = view.comparison
        question = SalesQuestion(
            period=to_question_period(view.period),
            by="store" if by is By.STORE else "day",
            store_ids=store_ids,
            comparison=None if comparison is None else to_question_period(comparison.period),
        )
        answer = await self._analysis.answer(organization_id, query, question, deadline_s=deadline_s)
        compared = _sums_by_key(answer.compared)
        return ComparedSales(
            rows=_sums_by_key(answer.rows),
            compared=compared,
            total=add_up(answer.whole.items()),
            compared_total=add_totals(compared.values()),
            store_ids=store_ids,
            as_of=answer.as_of,
        )


def _sums_by_key(rows: Sequence[SalesRow]) -> dict[Any, PerCurrency]:
    """The sums by day or by store."""
    return {row.store_id or row.first: add_up(row.sums.items()) for row in rows}


async def _find_store_ids(tx: Tx, organization_id: UUID, view: AnalysisView) -> tuple[UUID, ...] | None:
    """Find the stores to count: those that the user chose, like-for-like only those with tickets in both periods; None
    means all."""
    comparison = view.comparison
    if comparison is None or not view.is_like_for_like:
        return view.store_ids
    days = [(each.first, each.last) for each in (view.period, comparison.period)]
    return tuple(await find_comparable_stores(tx, organization_id, *days, store_ids=view.store_ids))


async def _read_totals(tx: Tx, visit: Visit, view: AnalysisView, by: By) -> ComparedSales:
    organization_id, period, comparison = visit.organization_id, view.period, view.comparison
    store_ids = await _find_store_ids(tx, organization_id, view)
    read = partial(read_sales, tx, organization_id, store_ids=store_ids)
    current = await read(first=period.first, last=period.last, by=by)
    hours: Mapping[int, PerCurrency] = {}
    if period.days == 1 and by is By.DAY:
        hours = (await read(first=period.first, last=period.last, by=By.HOUR)).rows
    compared: Mapping[Any, PerCurrency] = {}
    current_hour: Mapping[Any, PerCurrency] = {}
    if comparison is not None:
        if period.last != view.today:
            compared = (await read(first=comparison.period.first, last=comparison.period.last, by=by)).rows
        else:
            # The current hour begins at the last full hour.
            hour, by_store = visit.now.astimezone(visit.format.zone).hour, by is By.STORE
            compared = await read_until_hour(tx, organization_id, comparison.period, hour, by=by, store_ids=store_ids)
            current_hour = await sum_late_hours(
                tx, organization_id, view.today, since=hour, by_store=by_store, store_ids=store_ids
            )
    progress = current.progress
    return ComparedSales(
        rows=current.rows,
        compared=compared,
        hours=list(hours.values()),
        current_hour=current_hour,
        ends_at_full_hour=comparison is not None and period.last == view.today,
        total=current.total,
        compared_total=add_totals(compared.values()),
        store_ids=store_ids,
        as_of=progress.as_of,
        backfilled_until=progress.filled_until,
        counted_until=progress.as_of if progress.is_behind else None,
    )
