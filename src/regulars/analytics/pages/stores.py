"""The page of stores: the measures of sales for each store, beside another period."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from starlette.responses import Response

from regulars.analytics.pages.filters import AnalysisView, read_view
from regulars.analytics.pages.frame import export_table, list_own_views, render_analysis, render_refused
from regulars.analytics.pages.measures import (
    CSV_HEADER,
    MEASURES,
    SALES_DEFINITIONS,
    FigureRow,
    choose_currency,
    csv_row,
    sums_in,
)
from regulars.analytics.pages.sales import PATH as SALES_PATH
from regulars.analytics.pages.sales import is_counting, money_stats, sort_rows, tickets_url, whole_row
from regulars.analytics.pages.sales_source import ComparedSales, SalesSource
from regulars.analytics.period import FIRST_DAY
from regulars.analytics.sales_figures import By
from regulars.consent.figures import ConsentFigures, read_figures
from regulars.kit.ids import STORE
from regulars.sales.totals.model import PerCurrency
from regulars.sales.totals.reports import find_first_day
from regulars.stores.find import name_stores
from regulars.web.render import redirect
from regulars.web.visit import Visit

PATH: Final = "/analyse/stores"
DEFAULT_SORT: Final = "net_cents"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTable:
    currency: str
    currencies: Sequence[str]
    rows: Sequence[FigureRow]
    whole: FigureRow
    has_opt_ins: bool


class StorePages:
    def __init__(self, source: SalesSource) -> None:
        self._source = source

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            view = await read_view(tx, visit, PATH)
            if view.form.is_refused:
                return await render_refused(tx, visit, view, "Stores")
            views = await list_own_views(tx, visit, view)
            first_day = await find_first_day(tx, visit.organization_id, since=FIRST_DAY)
        answer = await self._source.load(visit, view, By.STORE)
        figures = answer.figures
        return render_analysis(
            visit,
            "analytics/stores.html",
            view,
            views=views,
            defined=SALES_DEFINITIONS,
            is_live=is_counting(answer),
            is_soon=answer.is_soon,
            answer=answer,
            first_day=first_day,
            table=None if figures is None else await _table(visit, view, figures),
            stats=[] if figures is None else money_stats(visit.format, view, figures),
            measures=MEASURES,
        )

    async def export(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            view = (await read_view(tx, visit, PATH)).require_readable()
        figures = (await self._source.load(visit, view, By.STORE, is_patient=True)).figures
        if figures is None:
            return redirect(visit, view.url())
        table = await _table(visit, view, figures)
        rows = [csv_row(row, table.currency) for row in (*table.rows, table.whole)]
        return export_table(visit, "stores.csv", CSV_HEADER, rows)


async def _table(visit: Visit, view: AnalysisView, figures: ComparedSales) -> StoreTable:
    currency, currencies = choose_currency(view.value("currency"), figures.whole, figures.compared_whole)
    ids = {*figures.rows, *figures.compared}
    async with visit.database.reading() as tx:
        names = await name_stores(tx, visit.organization_id, ids)
    consent = await _read_consent(visit, view)
    rows = [
        _row(visit, view, figures, store_id, name=names.get(store_id, "?"), currency=currency)._replace(
            opt_ins_per_100=_per_100(consent, store_id, figures.rows.get(store_id))
        )
        for store_id in ids
    ]
    rows = [row for row in rows if row.sums.tickets or (row.compared and row.compared.tickets)]
    by_name = sorted(rows, key=lambda row: row.name.casefold())
    name = visit.format.count(len(rows), "store")
    return StoreTable(
        currency=currency,
        currencies=currencies,
        rows=by_name if view.value("sort") == "name" else sort_rows(by_name, view.value("sort") or DEFAULT_SORT),
        whole=whole_row(visit, view, figures, currency, name),
        has_opt_ins=consent is not None,
    )


async def _read_consent(visit: Visit, view: AnalysisView) -> ConsentFigures | None:
    """Opt-ins by store are counted for the last 30 days alone, and not by segment."""
    if view.period.preset != "30d" or view.segment is not None:
        return None
    found = await read_figures(visit.database, visit.organization_id, time_zone=visit.format.zone.key)
    return found.figures


def _per_100(consent: ConsentFigures | None, store_id: UUID, total: PerCurrency | None) -> float | None:
    """Opt-ins for every 100 tickets of all currencies."""
    if consent is None or total is None or not total.tickets:
        return None
    return round(100 * consent.opt_ins_at(store_id) / total.tickets, 1)


def _row(
    visit: Visit, view: AnalysisView, figures: ComparedSales, store_id: UUID, *, name: str, currency: str
) -> FigureRow:
    store = STORE.encode(store_id)
    compared = None if view.comparison is None else sums_in(figures.compared.get(store_id), currency)
    is_new = compared is not None and not compared.tickets
    return FigureRow(
        store,
        name,
        view.url(path=visit.url(SALES_PATH), store=[store], sort=None),
        "",
        tickets_url(visit, view, view.period, currency, store),
        sums_in(figures.rows.get(store_id), currency),
        None if is_new else compared,
        "no ticket then" if is_new else "",
        sums_in(figures.late.get(store_id), currency).net_cents,
    )
