"""A shop whose customers the segment of the design page tells apart, and its columns, built."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from tests.support import samples
from tests.support.client import Api
from tests.support.drain_queues import drain_queues
from tests.support.open_database import in_transaction, open_database
from tests.support.visitor import Visitor
from tests.support.waiting import ask_until

from regulars.catalog.counts.counting import CountQueue
from regulars.catalog.entries import retype
from regulars.catalog.model import AttributeType, Catalog
from regulars.columns.lifecycle import find_build_progress
from regulars.kit.db import Database, Tx
from regulars.profiles.attribute_values import AttributeValues
from regulars.sales.property_values import PropertyValues

T = TypeVar("T")
LINEN = {"external_id": "LIN-1", "name": "Chemise", "properties": {"collection": "Lin lavé"}}
WOOL = {"external_id": "WOOL-1", "name": "Pull", "properties": {"collection": "Laine"}}


@dataclass(frozen=True)
class SegmentShop:
    api: Api
    database_url: str
    organization_id: UUID
    store: str

    def work(self) -> None:
        drain_queues(self.database_url, self.organization_id)

    def prepare(self) -> None:
        """Build the columns."""
        self.work()
        progress = self.act(lambda tx: find_build_progress(tx, self.organization_id))
        assert progress is not None
        assert progress.state == "ready"

    def customer(self, name: str, **attributes: str) -> str:
        external_id = samples.unique(name)
        body = {"external_id": external_id, "first_name": name, "attributes": attributes}
        assert self.api.post("/v1/profiles", body).status in {200, 201}
        return external_id

    def sale(self, customer: str, *, days: int, cents: int, product: dict, quantity: float = 1) -> str:
        line = samples.line(product=product, quantity=quantity, total_price_cents=cents)
        sale = samples.sale(
            self.store, profile_id=customer, occurred_at=samples.ago(days=days), total_amount_cents=cents,
            line_items=[line],
        )  # fmt: skip
        answer = self.api.post("/v1/sales-events", sale)
        assert answer.status == 201, answer.body
        return str(sale["external_id"])

    def declare(self, key: str, declared: AttributeType, *values: str) -> None:
        self.act(
            lambda tx: retype(
                tx, self.organization_id, Catalog.ATTRIBUTES, key, declared=declared, allowed_values=values
            )
        )

    def count(self) -> None:
        """Count what fields suggest, also from tickets of this moment."""
        queue = CountQueue({Catalog.ATTRIBUTES: AttributeValues(), Catalog.PRODUCTS: PropertyValues()})

        async def work(database: Database) -> None:
            async with database.transaction() as tx:
                await tx.execute(
                    "UPDATE catalog_counts SET due_at = %s WHERE organization_id = %s", (tx.now, self.organization_id)
                )
            while await queue.run_pass(database, self.organization_id):
                pass

        with open_database(self.database_url) as opened:
            opened.run(work)

    def act(self, act: Callable[[Tx], Awaitable[T]]) -> T:
        """A use case in a transaction of its own."""
        return in_transaction(self.database_url, act)


@dataclass(frozen=True)
class Crowd:
    shop: SegmentShop
    slow: str
    busy: str
    ticket: str


def open_shop(api: Api, visitor: Visitor, database_url: str) -> Crowd:
    assert api.tenant is not None
    store = api.post("/v1/stores", samples.store(name="Lyon République")).json()["id"]
    shop = SegmentShop(api, database_url, api.tenant.organization_id, store)
    slow = shop.customer("Rémi", tier="Gold", points_balance="500", newsletter="true")
    busy = shop.customer("Odile", tier="Gold", points_balance="1240", newsletter="true")
    shop.customer("Silvère", tier="Silver", points_balance="900", newsletter="true")
    shop.customer("Nadia", tier="Gold", points_balance="n/a", newsletter="true")
    linen = shop.customer("Inès", tier="Platinum", points_balance="1000", newsletter="true")
    shop.sale(slow, days=100, cents=30000, product=WOOL)
    shop.sale(busy, days=90, cents=91460, product=LINEN, quantity=5)
    ticket = shop.sale(busy, days=0, cents=2000, product=WOOL)
    shop.sale(linen, days=400, cents=9000, product=LINEN, quantity=3)
    shop.work()
    shop.declare("tier", AttributeType.ENUM, "Gold", "Platinum", "Silver")
    assert visitor.post("/segments/prepare").status_code == 303
    shop.prepare()
    return Crowd(shop, slow, busy, ticket)


def open_counted_shop(api: Api, database_url: str) -> SegmentShop:
    """A shop whose fields have something to suggest: two stores of Lyon, two products, and a city of five customers."""
    assert api.tenant is not None
    address = {"address_line1": "1 rue", "postal_code": "69002", "locality": "Lyon", "country_code": "FR"}
    names = {"PART": "Lyon Part-Dieu", "ISLE": "Presqu’île"}
    stores = [samples.store(external_id=code, name=name, address=address) for code, name in names.items()]
    ids = [api.post("/v1/stores", store).json()["id"] for store in stores]
    shop = SegmentShop(api, database_url, api.tenant.organization_id, ids[0])
    for number in range(5):
        buyer = shop.customer(f"C{number}", city="Lyon")
        shop.sale(buyer, days=1, cents=5000, product=LINEN)
    shop.customer("Odd", city="Lyrique")
    shop.sale(shop.customer("Late"), days=2, cents=6000, product=LINEN)
    shop.sale(shop.customer("Old"), days=60, cents=9000, product=WOOL)
    shop.work()
    shop.count()
    return shop


def open_counted(visitor: Visitor, path: str, **query: str) -> str:
    """The page with its figures: it comes before they are there."""
    return ask_until("</output>", lambda: visitor.get(path, **query))
