"""What the worker does with new sales."""

import msgspec
import pytest
from tests.sales.desk import ticket
from tests.support import samples
from tests.support.drain_queues import drain

from regulars.sales.facts import SalesRecorded
from regulars.worker import LISTENERS

pytestmark = pytest.mark.anyio


def with_properties(**properties):
    return [samples.line(product={"external_id": "SKU", "properties": properties})]


async def test_new_product_keys_are_in_the_catalog_as_text(desk):
    await desk.record(
        ticket("A", line_items=[*with_properties(colour="red", size=42), samples.line(product=None)]),
        ticket("B", line_items=with_properties(colour="blue", organic=True)),
        ticket("C", line_items=[samples.line(product={"name": "no properties"})]),
    )
    # A repeated ticket and one that is refused tell of no keys.
    await desk.record(ticket("A", line_items=with_properties(other=1)))
    await desk.record(ticket("D", store_id="nowhere", line_items=with_properties(untold=1)))
    assert await drain(desk.database, desk.organization_id, LISTENERS) == 1
    keys = await desk.rows("SELECT key, type FROM product_properties WHERE organization_id = %s ORDER BY key")
    assert keys == [("colour", "text"), ("organic", "text"), ("size", "text")]


def test_a_fact_of_the_hot_path_names_no_keys():
    assert msgspec.json.decode(b'[{"sales": []}]', type=list[SalesRecorded]) == [SalesRecorded([])]
