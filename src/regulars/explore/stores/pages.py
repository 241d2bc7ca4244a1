"""Pages about stores: the list, by sales or by name, its CSV export, and the page of one store."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from datetime import date
from operator import attrgetter
from typing import Final

from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.analytics.figures import read_progress, read_totals
from regulars.analytics.period import Period
from regulars.analytics.query import DAY, Query
from regulars.consent.figures import read_figures
from regulars.explore.stores.store_sales import RANKED_MAX, StoreSales, first_day, list_store_sales
from regulars.kit.ids import STORE, read_reference
from regulars.kit.keyset import PageRequest
from regulars.lists.sources import ByKey, read_all_rows
from regulars.sales.tickets import TicketFilters, list_tickets
from regulars.sales.totals.model import PerCurrency
from regulars.sales.totals.reports import read_store_activity
from regulars.stores.find import count_stores, find_store
from regulars.web.access import Action
from regulars.web.charts import bar_chart, hour_columns
from regulars.web.errors import PageNotFound
from regulars.web.format import Format
from regulars.web.listing import Filter, ListView, read_page, read_view
from regulars.web.render import render
from regulars.web.route import Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/stores"
FILTERS: Final = (Filter("q", "Find a store", kind="search", placeholder="Name, town or store code"),)
SORTS: Final = ("sales", "name")
# Sorting by sales needs the totals of all stores, so it is not offered for more than `RANKED_MAX`.
SORTS_OF_MANY: Final = ("name",)
# Stores that the export reads at a time.
CSV_STORES: Final = 500
LAST_TICKETS: Final = 10
CSV_HEADER: Final = (
    "id", "external_id", "name", "currency", "net_cents", "gross_cents", "returned_cents", "tickets", "returns",
    "identified_tickets",
)  # fmt: skip


async def show_stores(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        store_count = await count_stores(tx, visit.organization_id, count_max=RANKED_MAX + 1)
        view = _view(visit, store_count)
        page = await read_page(view, _source(visit, view), lambda: nullcontext(tx))
        progress = await read_progress(tx, visit.organization_id)
    consent = await read_figures(visit.database, visit.organization_id, time_zone=visit.format.zone.key)
    return render(
        visit,
        "explore/stores.html",
        view=view,
        page=page,
        rows=page.rows,
        store_count=store_count,
        ranked_max=RANKED_MAX,
        search_more_url=page.search_more_url,
        first=first_day(visit),
        progress=progress,
        consent=consent.figures,
    )


def _view(visit: Visit, store_count: int) -> ListView:
    return read_view(
        visit, "stores", PATH, filters=FILTERS, sorts=SORTS if store_count <= RANKED_MAX else SORTS_OF_MANY
    )


def _source(visit: Visit, view: ListView) -> ByKey[StoreSales]:
    return view.by_key(lambda tx, page: list_store_sales(tx, visit, view, page), attrgetter("position"))


async def export_stores(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        store_count = await count_stores(tx, visit.organization_id, count_max=RANKED_MAX + 1)
    source = _source(visit, _view(visit, store_count))
    all_stores = read_all_rows(source, visit.database.reading, limit=CSV_STORES)
    csv_rows = (row async for sales in all_stores for row in _csv_rows_of(sales))
    return export_csv(visit, "stores.export", "stores.csv", CSV_HEADER, csv_rows)


def _csv_rows_of(sales: StoreSales) -> Iterator[list[str]]:
    """One row for each currency."""
    start = [STORE.encode(sales.store.id), sales.store.external_id, sales.store.name or ""]
    for currency, sums in sales.total.by_net_sales():
        numbers = (sums.net_cents, sums.gross_cents, sums.returned_cents, sums.tickets, sums.returns, sums.identified)
        yield [*start, currency, *map(str, numbers)]
    if not sales.total.sums:
        yield [*start, "", *["0"] * 6]


async def show_store(visit: Visit) -> Response:
    zone, first = visit.format.zone, first_day(visit)
    period = Period(first, visit.format.today)
    async with visit.database.reading() as tx:
        store = await find_store(tx, visit.organization_id, read_reference(STORE, visit.references[0]))
        if store is None:
            raise PageNotFound("No store of this organization has this id.")
        sales = await read_totals(tx, visit.organization_id, Query(period=period, by=(DAY,), store_ids=(store.id,)))
        activities = await read_store_activity(tx, visit.organization_id, [store.id], now=visit.now, zone=zone)
        last_tickets = await list_tickets(
            tx, visit.organization_id, TicketFilters(store_id=store.id), PageRequest(LAST_TICKETS)
        )
    activity = activities[store.id]
    # The chart begins at 9:00, or at the first hour with tickets if that is earlier.
    hours = range(min([*activity.usual, *activity.today, 9]), 24)
    return render(
        visit,
        "explore/store.html",
        store=store,
        canonical_id=STORE.encode(store.id),
        total=sales.total,
        first=first,
        activity=activity,
        columns=hour_columns([activity.today.get(h, 0) for h in hours], [activity.usual.get(h, 0.0) for h in hours]),
        charts=[
            (currency, _chart(visit.format, sales.of(period), currency)) for currency, _ in sales.total.by_net_sales()
        ],
        tickets=last_tickets,
        tickets_url=visit.url("/tickets") + f"?store={STORE.encode(store.id)}",
        progress=sales.progress,
    )


def _chart(formats: Format, days: Mapping[date, PerCurrency], currency: str) -> object:
    sums_by_day = [total.sums.get(currency) for total in days.values()]
    net = [0 if sums is None else sums.net_cents for sums in sums_by_day]
    titles = [
        f"{formats.day(day)}: {formats.money_rounded(cents, currency)}" for day, cents in zip(days, net, strict=True)
    ]
    return bar_chart(
        [cents / 100 for cents in net], titles=titles, labels=[formats.day(day) for day in days], is_last_partial=True
    )


PAGES: Final = (
    Page(path=PATH, needs=Action.READ, handle=show_stores),
    Page(path=f"{PATH}.csv", needs=Action.READ, handle=export_stores, harm=Harm.FIGURES),
    Page(path=f"{PATH}/{{store}}", needs=Action.READ, handle=show_store),
)
