"""Two stores with tickets of two currencies, this year and a year ago, and their totals, counted."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from tests.support import samples
from tests.support.client import Api
from tests.support.drain_queues import drain_queues

SCARF = {"external_id": "SCARF", "name": "Scarf", "properties": {"collection": "Wool"}}
SOAP = {"external_id": "SOAP", "name": "Soap", "properties": {}}


@dataclass(frozen=True)
class Shop:
    api: Api
    database_url: str
    paris: str
    geneva: str
    # The day of its opening, because the tests may run past midnight.
    today: date = field(default_factory=lambda: samples.now().date())

    def sell(
        self,
        store: str,
        *,
        days: int,
        cents: int,
        product: dict[str, Any] = SCARF,
        gift: dict[str, Any] | None = None,
        at: time = time(12),
        **changes: Any,
    ) -> None:
        """On the day so many days ago, at noon; a gift is a second line."""
        lines = [samples.line(product=product, total_price_cents=cents, unit_price_cents=cents, tax_cents=0)]
        if gift is not None:
            lines.append(
                samples.line(external_id="L2", product=gift, total_price_cents=0, unit_price_cents=0, tax_cents=0)
            )
        moment = samples.at(datetime.combine(self.today - timedelta(days=days), at, UTC))
        sale = samples.sale(
            store, occurred_at=moment, total_amount_cents=cents, total_tax_cents=0, line_items=lines, **changes
        )
        answer = self.api.post("/v1/sales-events", sale)
        assert answer.status == 201, answer.body

    def count(self) -> None:
        drain_queues(self.database_url, self.api.tenant.organization_id)


def open_shop(api: Api, database_url: str) -> Shop:
    """Yesterday 300 and 200 EUR in Paris and 50 CHF in Geneva, 40 EUR back; 364 days before that 250 EUR in Paris."""
    stores = [samples.store(name="Paris"), samples.store(name="Geneva")]
    for store in stores:
        assert api.post("/v1/stores", store).status == 201
    shop = Shop(api, database_url, stores[0]["external_id"], stores[1]["external_id"])
    shop.sell(shop.paris, days=1, cents=30_000)
    shop.sell(shop.paris, days=2, cents=20_000)
    shop.sell(shop.paris, days=2, cents=4_000, type="RETURN")
    shop.sell(shop.geneva, days=2, cents=5_000, currency="CHF")
    shop.sell(shop.paris, days=365, cents=25_000)
    shop.count()
    return shop
