"""Pages about stores: the list, by sales or by name, its CSV export, and the page of one store."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.analytics.sales_figures import By, read_sales
from regulars.consent.figures import read_figures
from regulars.explore.stores.store_sales import (
    DAYS,
    RANKED_MAX,
    StoreSales,
    first_day,
    load_store_sales,
    load_totals,
    rank_stores,
)
from regulars.kit.db import Tx
from regulars.kit.ids import STORE, read_reference
from regulars.kit.keyset import PageRequest, PageRows, Position, page_of
from regulars.sales.tickets import TicketFilters, list_tickets
from regulars.sales.totals.model import PerCurrency
from regulars.sales.totals.reports import read_store_activity, totals_counted_until
from regulars.stores.find import count_stores, find_store, list_by_name
from regulars.stores.model import ListedStore
from regulars.web.access import Action
from regulars.web.charts import bar_chart, hour_columns
from regulars.web.errors import PageNotFound
from regulars.web.format import Format
from regulars.web.listing import Filter, ListView, make_page, read_all_rows, read_view
from regulars.web.render import render
from regulars.web.route import Page
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
    zone = visit.format.zone
    async with visit.database.reading() as tx:
        store_count = await count_stores(tx, visit.organization_id, count_max=RANKED_MAX + 1)
        view = _view(visit, store_count)
        stores, totals = await _find_stores(tx, visit, view, view.request)
        page = make_page(view, stores, _position_of)
        rows = await _load_rows(tx, visit, page.rows, totals)
        # The time up to which older sales are in the totals; None once all are.
        totals_until = await totals_counted_until(tx, visit.organization_id)
    consent = await read_figures(visit.database, visit.organization_id, time_zone=zone.key)
    return render(
        visit,
        "explore/stores.html",
        view=view,
        page=page,
        rows=rows,
        store_count=store_count,
        ranked_max=RANKED_MAX,
        search_more_url=page.search_more_url,
        first=first_day(visit.now, zone),
        filled_until=totals_until,
        consent=consent.figures,
    )


def _view(visit: Visit, store_count: int) -> ListView:
    return read_view(
        visit, "stores", PATH, filters=FILTERS, sorts=SORTS if store_count <= RANKED_MAX else SORTS_OF_MANY
    )


class _FoundStores(NamedTuple):
    stores: PageRows[ListedStore]
    # The sales of these stores, and possibly of others.
    totals: Mapping[UUID, PerCurrency]


async def _find_stores(tx: Tx, visit: Visit, view: ListView, page: PageRequest) -> _FoundStores:
    text = view.value("q")
    zone = visit.format.zone
    if view.sort == "name":
        stores = await list_by_name(tx, visit.organization_id, page, text=text)
        ids = [listed.store.id for listed in stores]
        return _FoundStores(
            stores, await load_totals(tx, visit.organization_id, now=visit.now, zone=zone, store_ids=ids)
        )
    totals = await load_totals(tx, visit.organization_id, now=visit.now, zone=zone)
    ranked = await rank_stores(tx, visit.organization_id, text=text, totals=totals)
    listed = [ListedStore(store, position=(str(store.id),)) for store in ranked]
    return _FoundStores(page_of(listed, page, _position_of), totals)


def _position_of(listed: ListedStore) -> Position:
    return listed.position


async def _load_rows(
    tx: Tx, visit: Visit, stores: Sequence[ListedStore], totals: Mapping[UUID, PerCurrency]
) -> list[StoreSales]:
    zone, page_stores = visit.format.zone, [listed.store for listed in stores]
    return await load_store_sales(tx, visit.organization_id, page_stores, totals=totals, now=visit.now, zone=zone)


async def export_stores(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        store_count = await count_stores(tx, visit.organization_id, count_max=RANKED_MAX + 1)
    view = _view(visit, store_count)

    async def fetch(tx: Tx, page: PageRequest) -> PageRows[tuple[ListedStore, StoreSales]]:
        stores, totals = await _find_stores(tx, visit, view, page)
        rows = PageRows(zip(stores, await _load_rows(tx, visit, stores, totals), strict=True))
        rows.end_position = stores.end_position
        return rows

    all_stores = read_all_rows(visit.database.reading, fetch, lambda pair: pair[0].position, limit=CSV_STORES)
    csv_rows = (row async for _, sales in all_stores for row in _csv_rows_of(sales))
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
    zone = visit.format.zone
    today = visit.format.today
    first = today - timedelta(days=DAYS - 1)
    async with visit.database.reading() as tx:
        store = await find_store(tx, visit.organization_id, read_reference(STORE, visit.references[0]))
        if store is None:
            raise PageNotFound("No store of this organization has this id.")
        sales = await read_sales(tx, visit.organization_id, first=first, last=today, by=By.DAY, store_ids=[store.id])
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
        charts=[(currency, _chart(visit.format, sales.rows, currency)) for currency, _ in sales.total.by_net_sales()],
        tickets=last_tickets,
        tickets_url=visit.url("/tickets") + f"?store={STORE.encode(store.id)}",
        filled_until=sales.progress.filled_until,
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
    Page(path=f"{PATH}.csv", needs=Action.READ, handle=export_stores),
    Page(path=f"{PATH}/{{store}}", needs=Action.READ, handle=show_store),
)
