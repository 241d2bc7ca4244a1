"""What the worker does with new sales."""

import pytest
from tests.sales.desk import ticket
from tests.support import samples

from regulars.sales.facts import SalesRecorded
from regulars.sales.jobs import register_new_product_keys, unlink_erased_profiles
from regulars.worker import LISTENERS

pytestmark = pytest.mark.anyio


def with_properties(**properties):
    return [samples.line(product={"external_id": "SKU", "properties": properties})]


async def test_the_worker_listens_to_recorded_sales_with_both_jobs():
    assert set(LISTENERS[SalesRecorded]) >= {register_new_product_keys, unlink_erased_profiles}


async def test_new_product_keys_are_in_the_catalog_as_text(desk):
    outcomes = await desk.record(
        ticket("A", line_items=[*with_properties(colour="red", size=42), samples.line(product=None)]),
        ticket("B", line_items=with_properties(colour="blue", organic=True)),
        ticket("C", line_items=[samples.line(product={"name": "no properties"})]),
    )
    not_told = await desk.record(ticket("D", line_items=with_properties(untold=1)))
    assert not_told
    facts = [SalesRecorded([outcomes[0].sale.id, outcomes[1].sale.id]), SalesRecorded([outcomes[2].sale.id])]
    for _ in range(2):
        async with desk.database.transaction() as tx:
            await register_new_product_keys(tx, desk.organization_id, facts)
    keys = await desk.rows("SELECT key, type FROM product_properties WHERE organization_id = %s ORDER BY key")
    assert keys == [("colour", "text"), ("organic", "text"), ("size", "text")]


async def test_a_sale_whose_customer_was_erased_meanwhile_becomes_anonymous(desk):
    outcomes = await desk.record(ticket("A", profile_id="ada"), ticket("B", profile_id="eve"), ticket("C"))
    async with desk.database.transaction() as tx:
        await tx.execute("DELETE FROM profiles WHERE external_id = 'ada'")
        await unlink_erased_profiles(tx, desk.organization_id, [SalesRecorded([o.sale.id for o in outcomes])])
    linked = await desk.rows(
        "SELECT external_id, profile_id IS NOT NULL FROM sales_events WHERE organization_id = %s ORDER BY 1"
    )
    assert linked == [("A", False), ("B", True), ("C", False)]
