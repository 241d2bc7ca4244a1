"""The page of stores: the measures of sales for each store, compared with an earlier period."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from regulars.analytics.figures import Figures
from regulars.analytics.pages.filters import AnalysisView
from regulars.analytics.pages.measure_pages import MeasurePages, MeasureTable, tickets_url, total_row
from regulars.analytics.pages.measures import MeasureRow, choose_currency, sort_rows, sums_in
from regulars.analytics.pages.net_chart import NetBar, RankedChart, draw_ranked
from regulars.analytics.pages.sales import PATH as SALES_PATH
from regulars.analytics.query import STORE as BY_STORE
from regulars.columns.questions import Dimension
from regulars.consent.figures import ConsentFigures, read_figures
from regulars.kit.ids import STORE
from regulars.stores.find import name_stores
from regulars.web.visit import Visit

PATH: Final = "/analyse/stores"
DEFAULT_SORT: Final = "net_cents"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTable(MeasureTable):
    net: RankedChart


class StorePages(MeasurePages):
    path, title, template = PATH, "Stores", "analytics/stores.html"

    def dimension(self, _view: AnalysisView) -> Dimension:
        return BY_STORE

    async def table(self, visit: Visit, view: AnalysisView, figures: Figures) -> StoreTable:
        currency, currencies = choose_currency(view.value("currency"), figures.total, figures.compared_total)
        ids: set[UUID] = {store_id for (store_id,) in (*figures.rows, *figures.compared)}
        async with visit.database.reading() as tx:
            names = await name_stores(tx, visit.organization_id, ids)
        consent = await _read_consent(visit, view)
        all_rows = {
            store_id: _row(visit, view, figures, store_id, name=names.get(store_id, "?"), currency=currency)._replace(
                opt_ins_per_100=_opt_ins_per_100(consent, figures, [store_id])
            )
            for store_id in ids
        }
        shown = {
            store_id: row
            for store_id, row in all_rows.items()
            if row.sums.tickets or (row.compared and row.compared.tickets)
        }
        rows = list(shown.values())
        by_name = sorted(rows, key=lambda row: row.name.casefold())
        name = visit.format.count(len(rows), "store")
        nets = [
            NetBar(row.name, row.sums.net_cents, None if row.compared is None else row.compared.net_cents)
            for row in rows
        ]
        return StoreTable(
            currency=currency,
            currencies=currencies,
            rows=by_name if view.value("sort") == "name" else sort_rows(by_name, view.value("sort") or DEFAULT_SORT),
            total=total_row(visit, view, figures, currency, name)._replace(
                opt_ins_per_100=_opt_ins_per_100(consent, figures, shown)
            ),
            has_opt_ins=consent is not None,
            net=draw_ranked(visit.format, nets, currency),
        )


async def _read_consent(visit: Visit, view: AnalysisView) -> ConsentFigures | None:
    """Read the opt-ins by store, which are counted only for the last 30 days, and not by segment."""
    if view.period.preset != "30d" or view.segment is not None:
        return None
    counted = await read_figures(visit.database, visit.organization_id, time_zone=visit.format.zone.key)
    return counted.figures


def _opt_ins_per_100(consent: ConsentFigures | None, figures: Figures, store_ids: Collection[UUID]) -> float | None:
    """The number of opt-ins of these stores per 100 of their tickets in all currencies."""
    tickets = sum(total.tickets for total in figures.of(store_ids).values())
    if consent is None or not tickets:
        return None
    return round(100 * sum(map(consent.opt_ins_at, store_ids)) / tickets, 1)


def _row(visit: Visit, view: AnalysisView, figures: Figures, store_id: UUID, *, name: str, currency: str) -> MeasureRow:
    store = STORE.encode(store_id)
    compared = None if view.comparison is None else sums_in(figures.compared.get((store_id,)), currency)
    # A store without a ticket in the compared period has no comparison.
    is_new = compared is not None and not compared.tickets
    return MeasureRow(
        store,
        name,
        view.url(path=visit.url(SALES_PATH), store=[store], sort=None),
        "",
        tickets_url(visit, view, view.period, currency, store_ids=[store_id]),
        sums_in(figures.rows.get((store_id,)), currency),
        None if is_new else compared,
        "No tickets then" if is_new else "",
        sums_in(figures.current_hour.get((store_id,)), currency).net_cents,
    )
