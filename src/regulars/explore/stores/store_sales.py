"""Load the sales of each store in the last 30 days, for the list of stores.

The list can be ranked by sales only for up to a thousand stores, because a ranking needs the totals of all stores. More
stores are listed by name, which needs only the totals of the stores on the page.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from operator import attrgetter
from typing import Final
from uuid import UUID

from regulars.analytics.figures import read_totals
from regulars.analytics.period import Period
from regulars.analytics.query import STORE as BY_STORE
from regulars.analytics.query import Query
from regulars.kit.db import Tx
from regulars.kit.ids import STORE
from regulars.kit.keyset import PageRequest, PageRows, Position, page_of
from regulars.sales.totals.model import PerCurrency
from regulars.sales.totals.reports import StoreActivity, read_store_activity
from regulars.stores.find import list_by_name, list_stores
from regulars.stores.model import ListedStore, Store
from regulars.web.listing import ListView
from regulars.web.visit import Visit

DAYS: Final = 30
RANKED_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSales:
    store: Store
    # The sort key of the store in the list.
    position: Position
    total: PerCurrency
    activity: StoreActivity


def first_day(visit: Visit) -> date:
    return visit.format.today - timedelta(days=DAYS - 1)


async def list_store_sales(tx: Tx, visit: Visit, view: ListView, page: PageRequest) -> PageRows[StoreSales]:
    """List the stores with the searched text in their name, town or code, by sales or by name."""
    if view.sort == "name":
        stores = await list_by_name(tx, visit.organization_id, page, text=view.value("q"))
        totals = await _load_totals(tx, visit, [listed.store.id for listed in stores])
    else:
        totals = await _load_totals(tx, visit)
        ranked = await _rank_stores(tx, visit.organization_id, text=view.value("q"), totals=totals)
        stores = page_of([ListedStore(store, (str(store.id),)) for store in ranked], page, attrgetter("position"))
    ids = [listed.store.id for listed in stores]
    activities = await read_store_activity(tx, visit.organization_id, ids, now=visit.now, zone=visit.format.zone)
    return stores.replaced(
        StoreSales(
            store=store, position=position, total=totals.get(store.id, PerCurrency()), activity=activities[store.id]
        )
        for store, position in stores
    )


async def _load_totals(tx: Tx, visit: Visit, store_ids: Sequence[UUID] | None = None) -> Mapping[UUID, PerCurrency]:
    """The sales of these stores in the last 30 days; of all stores if `store_ids` is None."""
    stores = None if store_ids is None else tuple(store_ids)
    query = Query(period=Period(first_day(visit), visit.format.today), by=(BY_STORE,), store_ids=stores)
    sales = await read_totals(tx, visit.organization_id, query)
    return {store_id: total for (store_id,), total in sales.rows.items()}


async def _rank_stores(tx: Tx, organization_id: UUID, *, text: str, totals: Mapping[UUID, PerCurrency]) -> list[Store]:
    """The stores with the text in their name, town or code, ranked by sales."""
    stores = await list_stores(tx, organization_id, after=None, limit=RANKED_MAX)
    sales = {store.id: _find_main_currency(totals.get(store.id, PerCurrency())) for store in stores}
    # Amounts in different currencies cannot be compared. So stores are grouped by currency, the currency of most stores
    # first, and ranked by amount within a currency.
    stores_per_currency = Counter(currency for currency, _ in sales.values())
    matching = [store for store in stores if text.casefold() in _search_text_of(store)]

    def rank(store: Store) -> tuple[bool, int, str, int, str]:
        currency, net_cents = sales[store.id]
        return not currency, -stores_per_currency[currency], currency, -net_cents, store.display_name

    return sorted(matching, key=rank)


def _find_main_currency(total: PerCurrency) -> tuple[str, int]:
    """The currency with the store's largest net sales, and the amount; no currency for a store without tickets."""
    return next(((currency, sums.net_cents) for currency, sums in total.by_net_sales()), ("", 0))


def _search_text_of(store: Store) -> str:
    address = store.address
    town = "" if address is None else f"{address.locality} {address.postal_code}"
    return f"{store.name or ''} {store.external_id} {STORE.encode(store.id)} {town}".casefold()
