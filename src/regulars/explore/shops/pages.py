"""Stores: the list, by what they sold or by name, and the page of one."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

from starlette.responses import Response

from regulars.consent.browse.figures import read_figures
from regulars.explore.draw import bar_chart, hours
from regulars.explore.shops.figures import DAYS, StoreLine, read_stores
from regulars.kit.ids import STORE, read_reference
from regulars.sales.browse.model import Filters
from regulars.sales.browse.tickets import list_tickets
from regulars.sales.totals.model import add_up
from regulars.sales.totals.read import Day, filled_until, list_days, read_rhythms
from regulars.stores.find import find_store
from regulars.web.access import Action
from regulars.web.csv import csv_response
from regulars.web.errors import PageNotFound
from regulars.web.format import Format
from regulars.web.listing import Filter, ListView, read_view
from regulars.web.render import render
from regulars.web.route import Page
from regulars.web.visit import Visit

PATH: Final = "/stores"
FILTERS: Final = (Filter("q", "Find a store", kind="search", placeholder="Name, place or code"),)
SORTS: Final = ("sales", "name")
LAST_TICKETS: Final = 10
CSV_HEADER: Final = (
    "id", "external_id", "name", "currency", "net_cents", "gross_cents", "returned_cents", "tickets", "returns",
    "identified_tickets",
)  # fmt: skip


async def show_stores(visit: Visit) -> Response:
    view = read_view(visit, "stores", PATH, filters=FILTERS, sorts=SORTS)
    async with visit.database.reading() as tx:
        stores = await read_stores(tx, visit.organization_id, now=visit.now, zone=visit.format.zone)
    lines = arrange(stores.lines, view)
    consent = await read_figures(visit.database, visit.organization_id, time_zone=visit.format.zone.key)
    return render(
        visit,
        "explore/stores.html",
        view=view,
        stores=stores,
        lines=lines,
        consent=consent.figures,
    )


def arrange(lines: list[StoreLine], view: ListView) -> list[StoreLine]:
    wanted = view.value("q").casefold()
    fitting = [line for line in lines if wanted in _searchable(line)]
    if view.sort == "name":
        return sorted(fitting, key=_by_name)
    # Amounts of two currencies do not compare: the currency of more stores comes first, and inside it the larger sum.
    stores_of = Counter(line.currency for line in lines)
    return sorted(fitting, key=lambda line: (-stores_of[line.currency], line.currency, -line.net_cents, line.name))


def _searchable(line: StoreLine) -> str:
    address = line.store.address
    place = "" if address is None else f"{address.locality} {address.postal_code}"
    return f"{line.name} {line.store.external_id} {STORE.encode(line.store.id)} {place}".casefold()


def _by_name(line: StoreLine) -> str:
    return line.name.casefold()


async def export_stores(visit: Visit) -> Response:
    view = read_view(visit, "stores", PATH, filters=FILTERS, sorts=SORTS)
    async with visit.database.reading() as tx:
        stores = await read_stores(tx, visit.organization_id, now=visit.now, zone=visit.format.zone)
    return csv_response("stores.csv", CSV_HEADER, _csv_rows(arrange(stores.lines, view)))


async def _csv_rows(lines: list[StoreLine]) -> AsyncIterator[list[str]]:
    for line in lines:
        start = [STORE.encode(line.store.id), line.store.external_id, line.store.name or ""]
        for currency, sums in line.total.by_size():
            figures = (sums.net_cents, sums.gross_cents, sums.returned_cents, sums.tickets, sums.returns)
            yield [*start, currency, *map(str, figures), str(sums.identified)]
        if not line.total.sums:
            yield [*start, "", *["0"] * 6]


async def show_store(visit: Visit) -> Response:
    zone = visit.format.zone
    today = visit.now.astimezone(zone).date()
    first = today - timedelta(days=DAYS - 1)
    async with visit.database.reading() as tx:
        store = await find_store(tx, visit.organization_id, read_reference(STORE, visit.references[0]))
        if store is None:
            raise PageNotFound("No store of this organization has this id.")
        days = await list_days(tx, visit.organization_id, first=first, last=today, zone=zone, store_id=store.id)
        rhythms = await read_rhythms(tx, visit.organization_id, [store.id], now=visit.now, zone=zone)
        last = await list_tickets(
            tx, visit.organization_id, Filters(store_id=store.id), beyond=None, limit=LAST_TICKETS
        )
        filling = await filled_until(tx, visit.organization_id)
    rhythm = rhythms[store.id]
    total = add_up(item for day in days for item in day.total.sums.items())
    span = range(min([*rhythm.usual, *rhythm.today, 9]), 24)
    return render(
        visit,
        "explore/store.html",
        store=store,
        canonical=STORE.encode(store.id),
        total=total,
        first=first,
        rhythm=rhythm,
        columns=hours([rhythm.today.get(h, 0) for h in span], [rhythm.usual.get(h, 0.0) for h in span]),
        charts=[(currency, _chart(visit.format, days, currency)) for currency, _ in total.by_size()],
        tickets=last.lines,
        tickets_url=visit.url("/tickets") + f"?store={STORE.encode(store.id)}",
        filled_until=filling,
    )


def _chart(formats: Format, days: list[Day], currency: str) -> object:
    sums = [day.total.sums.get(currency) for day in days]
    net = [0 if one is None else one.net_cents for one in sums]
    titles = [
        f"{formats.day(day.day)}: {formats.money_round(cents, currency)}" for day, cents in zip(days, net, strict=True)
    ]
    return bar_chart(
        [cents / 100 for cents in net], titles=titles, labels=[formats.day(day.day) for day in days], is_last_open=True
    )


PAGES: Final = (
    Page(path=PATH, needs=Action.READ, handle=show_stores),
    Page(path=f"{PATH}.csv", needs=Action.READ, handle=export_stores),
    Page(path=f"{PATH}/{{store}}", needs=Action.READ, handle=show_store),
)
