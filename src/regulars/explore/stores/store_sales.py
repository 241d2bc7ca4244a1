"""Load the sales of each store in the last 30 days, for the list of stores.

The list can be ranked by sales only for up to a thousand stores, because a ranking needs the totals of all stores. More
stores are listed by name, which needs only the totals of the stores on the page.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.analytics.sales_figures import By, read_sales
from regulars.kit.db import Tx
from regulars.kit.ids import STORE
from regulars.sales.totals.model import PerCurrency
from regulars.sales.totals.reports import StoreActivity, read_store_activity
from regulars.stores.find import list_stores
from regulars.stores.model import Store

DAYS: Final = 30
RANKED_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSales:
    store: Store
    total: PerCurrency
    activity: StoreActivity

    @property
    def name(self) -> str:
        return name_of(self.store)


def first_day(now: datetime, zone: ZoneInfo) -> date:
    return now.astimezone(zone).date() - timedelta(days=DAYS - 1)


async def load_totals(
    tx: Tx, organization_id: UUID, *, now: datetime, zone: ZoneInfo, store_ids: Sequence[UUID] | None = None
) -> Mapping[UUID, PerCurrency]:
    """The sales of these stores in the last 30 days; of all stores if `store_ids` is None."""
    today = now.astimezone(zone).date()
    sales = await read_sales(
        tx, organization_id, first=first_day(now, zone), last=today, by=By.STORE, store_ids=store_ids
    )
    return sales.rows


async def load_store_sales(
    tx: Tx,
    organization_id: UUID,
    stores: Sequence[Store],
    *,
    totals: Mapping[UUID, PerCurrency],
    now: datetime,
    zone: ZoneInfo,
) -> list[StoreSales]:
    """The totals and the activity of these stores, in their order."""
    ids = [store.id for store in stores]
    activities = await read_store_activity(tx, organization_id, ids, now=now, zone=zone)
    return [
        StoreSales(store=store, total=totals.get(store.id, PerCurrency()), activity=activities[store.id])
        for store in stores
    ]


async def rank_stores(tx: Tx, organization_id: UUID, *, text: str, totals: Mapping[UUID, PerCurrency]) -> list[Store]:
    """The stores with the text in their name, town or code, ranked by sales."""
    stores = await list_stores(tx, organization_id, after=None, limit=RANKED_MAX)
    sales = {store.id: _find_main_currency(totals.get(store.id, PerCurrency())) for store in stores}
    # Amounts in different currencies cannot be compared. So stores are grouped by currency, the currency of most stores
    # first, and ranked by amount within a currency.
    stores_per_currency = Counter(currency for currency, _ in sales.values())
    matching = [store for store in stores if text.casefold() in _search_text_of(store)]

    def rank(store: Store) -> tuple[bool, int, str, int, str]:
        currency, net_cents = sales[store.id]
        return not currency, -stores_per_currency[currency], currency, -net_cents, name_of(store)

    return sorted(matching, key=rank)


def name_of(store: Store) -> str:
    return store.name or store.external_id


def _find_main_currency(total: PerCurrency) -> tuple[str, int]:
    """The currency with the store's largest net sales, and the amount; no currency for a store without tickets."""
    return next(((currency, sums.net_cents) for currency, sums in total.by_net_sales()), ("", 0))


def _search_text_of(store: Store) -> str:
    address = store.address
    town = "" if address is None else f"{address.locality} {address.postal_code}"
    return f"{store.name or ''} {store.external_id} {STORE.encode(store.id)} {town}".casefold()
