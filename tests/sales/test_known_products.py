"""Products and values of their properties, as they are suggested: counted from tickets, which are each read once."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.sales.desk import ticket
from tests.support import samples
from tests.support.drain_queues import drain

from regulars.catalog.counts import counting, products, queries
from regulars.catalog.counts.counting import CountQueue
from regulars.catalog.model import Catalog
from regulars.catalog.suggestions import find_known_products, suggest_products, suggest_values
from regulars.sales.jobs import register_new_product_keys
from regulars.sales.property_values import PropertyValues
from regulars.work.personal import ErasedPeople
from regulars.worker import LISTENERS

pytestmark = pytest.mark.anyio


def line(code: str, name: str, cents: int, **changes):
    product = {"external_id": code, "name": name, "properties": {"collection": name.split(maxsplit=1)[0]}}
    return samples.line(product=product, total_price_cents=cents, unit_price_cents=None, quantity=1) | changes


class Shop:
    def __init__(self, desk, *, age_min=timedelta(0)) -> None:
        self.desk = desk
        self.queue = CountQueue({Catalog.PRODUCTS: PropertyValues(age_min=age_min)})

    async def sell(self, *tickets) -> None:
        await self.desk.record(*tickets)
        async with self.desk.database.transaction() as tx:
            await register_new_product_keys(tx, self.desk.organization_id, [])
            await tx.execute(
                "UPDATE catalog_counts SET due_at = %s WHERE organization_id = %s", (tx.now, self.desk.organization_id)
            )
        while await self.queue.run_pass(self.desk.database, self.desk.organization_id):
            pass

    async def find(self, typed: str = ""):
        async with self.desk.database.reading() as tx:
            return await suggest_products(tx, self.desk.organization_id, typed)

    async def pause(self) -> timedelta:
        """How long the count waits from now."""
        [(pause,)] = await self.desk.rows("SELECT due_at - now() FROM catalog_counts WHERE organization_id = %s")
        return pause

    async def values(self) -> list[tuple[str, int]]:
        async with self.desk.database.reading() as tx:
            return await suggest_values(
                tx, self.desk.organization_id, Catalog.PRODUCTS, "collection", "", sees_personal=False
            )


def sales(prefix: str, number: int, *lines):
    return [ticket(f"{prefix}{one}", profile_id=f"{prefix}-{one}", line_items=list(lines)) for one in range(number)]


async def test_products_are_found_by_code_and_name_with_their_prices_and_what_sold(desk):
    shop = Shop(desk)
    linen, wool = line("LIN-1", "Linen shirt", 4900, quantity=2), line("WOOL-1", "Wool coat", 9900)
    old = ticket("old", occurred_at=samples.ago(days=60), line_items=[line("LIN-1", "Lin", 3000)])
    back = ticket("back", type="RETURN", line_items=[line("BACK-1", "Linen scarf", 500)])
    await shop.sell(old, *sales("a", 2, linen), *sales("b", 1, wool), back)
    by_code = {product.code: product for product in await shop.find("")}
    today = samples.now().date()
    assert [product.code for product in await shop.find("LINEN")] == ["LIN-1", "BACK-1"]
    assert [product.code for product in await shop.find("wool-")] == ["WOOL-1"]
    assert by_code["LIN-1"].name == "Linen shirt"
    assert by_code["LIN-1"].prices == {"EUR": (2450, 3000)}
    assert (by_code["LIN-1"].sold_until(today), by_code["WOOL-1"].sold_until(today)) == (4, 1)
    assert by_code["LIN-1"].sold_until(today + timedelta(days=31)) == 0
    assert (by_code["BACK-1"].prices, by_code["BACK-1"].sold_until(today)) == ({}, 0)
    async with desk.database.transaction() as tx:
        await tx.execute("UPDATE catalog_products SET last_day = '2020-01-01', days = '{}' WHERE code = 'LIN-1'")
    assert [product.code for product in await shop.find("")] == ["WOOL-1", "BACK-1", "LIN-1"]
    assert await shop.find("%") == await shop.find("\0") == await shop.find("x" * 300) == []


async def test_a_count_goes_on_with_new_tickets_and_reads_each_once(desk):
    shop = Shop(desk)
    await shop.sell(*sales("a", 2, line("A", "First", 100)))
    async with desk.database.reading() as tx:
        [first] = await queries.list_full_counts(tx, desk.organization_id, Catalog.PRODUCTS)
    await shop.sell(*sales("b", 3, line("A", "First", 100), line("B", "Second", 100)))
    await shop.sell()
    async with desk.database.reading() as tx:
        [count] = await queries.list_full_counts(tx, desk.organization_id, Catalog.PRODUCTS)
        tallies = await counting.find_tallies(tx, desk.organization_id, count)
        known = await find_known_products(tx, desk.organization_id, ["A", "B", "C"])
    assert (count.id, count.rows_read) == (first.id, 5)
    assert tallies["collection"].common == {"First": 5, "Second": 3}
    assert {code: product.sold for code, product in known.by_code.items()} == {"A": 5, "B": 3}
    assert known.is_complete


async def test_a_ticket_that_may_still_be_committed_before_others_is_read_later(desk):
    shop = Shop(desk, age_min=timedelta(minutes=2))
    await shop.sell(*sales("a", 1, line("A", "First", 100)))
    assert await shop.find() == []
    assert await shop.pause() <= timedelta(minutes=2)
    shop.queue = CountQueue({Catalog.PRODUCTS: PropertyValues()})
    await shop.sell()
    assert [product.code for product in await shop.find()] == ["A"]


async def test_a_count_waits_for_hours_while_nothing_is_sold_and_is_woken_by_the_next_ticket(desk):
    shop = Shop(desk)
    await shop.sell(*sales("a", 1, line("A", "First", 100)))
    await shop.sell()
    assert await shop.pause() > timedelta(hours=5)
    await drain(desk.database, desk.organization_id, LISTENERS)
    assert await shop.pause() <= timedelta(minutes=2)


async def test_of_too_many_products_those_that_were_sold_last_are_known(desk, monkeypatch):
    monkeypatch.setattr(products, "PRODUCTS_MAX", 2)
    shop = Shop(desk)
    for days, code in [(9, "C"), (5, "B"), (1, "A"), (7, "D")]:
        await shop.sell(ticket(code, occurred_at=samples.ago(days=days), line_items=[line(code, code, 100)]))
    async with desk.database.reading() as tx:
        known = await find_known_products(tx, desk.organization_id, ["A", "B", "C"])
    assert sorted(known.by_code) == ["A", "B"]
    assert not known.is_complete


async def test_a_value_of_a_property_needs_five_customers_in_all(desk):
    shop = Shop(desk)
    await shop.sell(*sales("a", 3, line("A", "Linen shirt", 100)), *sales("w", 1, *[line("W", "Wool", 100)] * 9))
    await shop.sell(ticket("without", line_items=[line("A", "Linen", 100)]), ticket("a0b", profile_id="a-0"))
    assert await shop.values() == []
    await shop.sell(*sales("b", 2, line("A", "Linen shirt", 100)))
    assert await shop.values() == [("Linen", 6)]
    [(erased,)] = await desk.rows("SELECT id FROM profiles WHERE organization_id = %s AND external_id = 'a-1'")
    await _erase(desk, erased)
    assert await shop.values() == []


async def _erase(desk, profile_id: UUID) -> None:
    async with desk.database.transaction() as tx:
        await counting.erase_values(tx, desk.organization_id, ErasedPeople(profile_ids=[profile_id]))


async def test_amounts_at_their_limits_are_counted(desk):
    shop = Shop(desk)
    tiny = line("A", "Dust", 2**53 - 1, quantity=0.000000001)
    await shop.sell(ticket("a", occurred_at="0001-01-01T00:00:00Z", line_items=[tiny], total_amount_cents=2**53 - 1))
    voucher = line("A", "Dust", -1000, quantity=1e-16)
    await shop.sell(ticket("b", line_items=[voucher], total_amount_cents=0))
    [product] = await shop.find("dust")
    assert product.prices == {"EUR": (1 - 2**53, 2**53 - 1)}
