"""What each store sold lately: the lines of the list, and the days of one."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.kit.db import Tx
from regulars.sales.totals.model import PerCurrency
from regulars.sales.totals.read import Rhythm, filled_until, read_rhythms, sum_stores
from regulars.stores.find import list_stores
from regulars.stores.model import Store

DAYS: Final = 30
# A chain with more stores sees these, and that there are more.
STORES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLine:
    store: Store
    total: PerCurrency
    rhythm: Rhythm

    @property
    def name(self) -> str:
        return self.store.name or self.store.external_id

    @property
    def currency(self) -> str:
        """The one it sells most in; a store without tickets has none, and stands last."""
        return next((currency for currency, _ in self.total.by_size()), "")

    @property
    def net_cents(self) -> int:
        """Of that currency."""
        return next((sums.net_cents for _, sums in self.total.by_size()), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    lines: list[StoreLine]
    has_more: bool
    filled_until: datetime | None
    first: date


async def read_stores(tx: Tx, organization_id: UUID, *, now: datetime, zone: ZoneInfo) -> Stores:
    today = now.astimezone(zone).date()
    first = today - timedelta(days=DAYS - 1)
    stores = await list_stores(tx, organization_id, after=None, limit=STORES_MAX + 1)
    totals = await sum_stores(tx, organization_id, first=first, last=today, zone=zone)
    rhythms = await read_rhythms(tx, organization_id, [store.id for store in stores[:STORES_MAX]], now=now, zone=zone)
    lines = [
        StoreLine(store=store, total=totals.get(store.id, PerCurrency()), rhythm=rhythms[store.id])
        for store in stores[:STORES_MAX]
    ]
    return Stores(
        lines=lines,
        has_more=len(stores) > STORES_MAX,
        filled_until=await filled_until(tx, organization_id),
        first=first,
    )
