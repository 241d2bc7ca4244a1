"""The base class of the pages of sales and of stores: a table of the measures of sales, such as net and tickets, as a
page and as a CSV file. A page compares a period with an earlier period."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from starlette.responses import Response

from regulars.analytics.figures import Figures, answer_query, find_comparable_stores
from regulars.analytics.pages.answers import PAGE_WAIT_S, AnalysisResult, await_answer
from regulars.analytics.pages.filters import STORES_CHOSEN_MAX, AnalysisView, read_view
from regulars.analytics.pages.frame import export_table, list_saved_views, render_analysis, render_refused
from regulars.analytics.pages.measures import CSV_HEADER, SALES_DEFINITIONS, MeasureRow, csv_row, sums_in
from regulars.analytics.period import FIRST_DAY, Period
from regulars.analytics.query import SALES_MEASURES, Query
from regulars.columns.client import DEADLINE_S, Analysis
from regulars.columns.lifecycle import need_columns
from regulars.columns.questions import Dimension
from regulars.kit.ids import STORE
from regulars.sales.tickets import encode_stores
from regulars.sales.totals.model import add_totals
from regulars.sales.totals.reports import find_first_day, find_last_day, find_totals_zone
from regulars.web.format import Format
from regulars.web.render import redirect
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureTable:
    currency: str
    currencies: Sequence[str]
    rows: Sequence[MeasureRow]
    total: MeasureRow
    has_opt_ins: bool = False


class HeadlineStat(NamedTuple):
    """A number above the table: `figure` is the number, `detail` its change. A number of tickets has no currency."""

    name: str
    currency: str
    figure: str
    detail: str
    url: str


class MeasurePages(ABC):
    """The page and the CSV file of one table."""

    path: ClassVar[str]
    title: ClassVar[str]
    template: ClassVar[str]

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    @abstractmethod
    def dimension(self, view: AnalysisView) -> Dimension:
        """What a row is."""

    @abstractmethod
    async def table(self, visit: Visit, view: AnalysisView, figures: Figures) -> MeasureTable: ...

    async def stats(self, visit: Visit, view: AnalysisView, figures: Figures) -> list[HeadlineStat]:
        return money_stats(visit.format, view, figures)

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            view = await read_view(tx, visit, self.path)
            if view.form.is_refused:
                return await render_refused(tx, visit, view, self.title)
            saved_views = await list_saved_views(tx, visit, view)
            first_day = await find_first_day(tx, visit.organization_id, since=FIRST_DAY)
            last_day = await find_last_day(tx, visit.organization_id, since=FIRST_DAY)
            counted_zone = None if view.segment else await find_totals_zone(tx, visit.organization_id)
        answer = await self._load(visit, view, deadline_s=PAGE_WAIT_S)
        figures = answer.figures
        return render_analysis(
            visit,
            self.template,
            view,
            views=saved_views,
            defined=SALES_DEFINITIONS,
            reloads=is_counting(answer),
            reloads_soon=answer.is_nearly_ready,
            answer=answer,
            first_day=first_day,
            last_day=last_day,
            counted_zone=counted_zone,
            table=None if figures is None else await self.table(visit, view, figures),
            stats=[] if figures is None else await self.stats(visit, view, figures),
            measures=SALES_MEASURES,
        )

    async def export(self, visit: Visit) -> Response:
        """Export the table as the page shows it, with its total. If its sums are not counted yet, redirect to the page,
        which shows the progress."""
        async with visit.database.reading() as tx:
            view = (await read_view(tx, visit, self.path)).require_readable()
        figures = (await self._load(visit, view, deadline_s=DEADLINE_S)).figures
        if figures is None:
            return redirect(visit, view.url())
        table = await self.table(visit, view, figures)
        rows = [csv_row(row, table.currency) for row in (*table.rows, table.total)]
        return export_table(visit, f"{view.page}.csv", CSV_HEADER, rows)

    async def _load(self, visit: Visit, view: AnalysisView, *, deadline_s: float) -> AnalysisResult[Figures]:
        async with visit.database.transaction() as tx:
            # Also for sums that need no columns: from here users go on to customers and products.
            await need_columns(tx, visit.organization_id)
        query = await make_query(visit, view, self.dimension(view))
        return await await_answer(
            answer_query(visit.database, self._analysis, visit.organization_id, query, deadline_s=deadline_s)
        )


async def make_query(visit: Visit, view: AnalysisView, *by: Dimension) -> Query:
    """The query of the filters. If the period ends today, it is compared up to the last full hour."""
    comparison, store_ids = view.comparison, view.store_ids
    if comparison is not None and view.is_like_for_like:
        async with visit.database.reading() as tx:
            store_ids = await find_comparable_stores(
                tx, visit.organization_id, view.period, comparison.period, store_ids=store_ids
            )
    is_until_now = comparison is not None and view.period.last == view.today
    return Query(
        period=view.period,
        by=by,
        comparison=comparison,
        until_hour=visit.now.astimezone(visit.format.zone).hour if is_until_now else None,
        store_ids=store_ids,
        segment_ids=() if view.segment_id is None else (view.segment_id,),
    )


def is_counting(answer: AnalysisResult[Figures]) -> bool:
    """Whether tickets are still being counted, so that the browser must request the page again."""
    figures = answer.figures
    return figures is None or figures.progress.filled_until is not None or figures.progress.is_behind


def tickets_url(
    visit: Visit,
    view: AnalysisView,
    period: Period,
    currency: str,
    *,
    store_ids: Sequence[UUID] | None,
    hour: int | None = None,
    product: str = "",
) -> str:
    """The URL of the list of the tickets that a row counts, those of these stores or of all, in the period or in an
    hour of its first day, with a product or with any; empty if that list cannot filter them."""
    if view.segment is not None or (store_ids is not None and not 0 < len(store_ids) <= STORES_CHOSEN_MAX):
        return ""
    days = {"from": period.first.isoformat(), "to": period.last.isoformat()}
    times = days if hour is None else {"hour": f"{period.first.isoformat()}T{hour:02d}"}
    query = {**times, "currency": currency}
    if product:
        query["product"] = product
    if store_ids:
        query |= {"store": STORE.encode(store_ids[0])} if len(store_ids) == 1 else {"stores": encode_stores(store_ids)}
    return visit.url("/tickets") + "?" + urlencode(query)


def total_row(visit: Visit, view: AnalysisView, figures: Figures, currency: str, name: str) -> MeasureRow:
    compared = None if view.comparison is None else sums_in(figures.compared_total, currency)
    url = tickets_url(visit, view, view.period, currency, store_ids=figures.store_ids)
    hour_net_cents = sums_in(add_totals(figures.current_hour.values()), currency).net_cents
    sums = sums_in(figures.total, currency)
    return MeasureRow("total", name, "", "", url, sums, compared, current_hour_net_cents=hour_net_cents)


def money_stats(formats: Format, view: AnalysisView, figures: Figures) -> list[HeadlineStat]:
    """The net sales in each currency, and the number of tickets in all currencies, with their changes. Changes leave
    out the tickets of the current hour."""
    stats, current_hour = [], add_totals(figures.current_hour.values())
    for currency, sums in figures.total.by_net_sales():
        net, compared = sums.net_cents, sums_in(figures.compared_total, currency).net_cents
        show = partial(formats.money_rounded, currency=currency)
        detail = _describe_change(formats, net, compared, sums_in(current_hour, currency).net_cents, show)
        stats.append(
            HeadlineStat(
                f"Net sales, {currency}",
                currency,
                formats.money_rounded(net, currency),
                detail or ("no comparison" if view.comparison is not None else ""),
                view.url(currency=currency),
            )
        )
    tickets, compared = figures.total.tickets, figures.compared_total.tickets
    detail = _describe_change(formats, tickets, compared, current_hour.tickets, formats.number)
    return [*stats, HeadlineStat("Tickets, returns included", "", formats.number(tickets), detail, "")]


def _describe_change(
    formats: Format, amount: int, compared: int, of_current_hour: int, show: Callable[[int], str]
) -> str:
    """The change against the compared period; empty if that had nothing. If tickets of the current hour are left out,
    it names the hour and the amount until then, because the amount above it includes the current hour."""
    if compared <= 0:
        return ""
    until_hour = amount - of_current_hour
    change = formats.delta(until_hour, compared)
    if not of_current_hour:
        return f"{change} against {show(compared)}"
    return f"{change} until {formats.clock(formats.now)[:2]}:00: {show(until_hour)} against {show(compared)}"
