"""The values of product properties, counted as they stand on tickets."""

import pytest
from tests.sales.desk import ticket
from tests.support import samples

from regulars.catalog.counts import counting
from regulars.catalog.counts.counting import CountQueue
from regulars.catalog.counts.model import START, ValueBatch, ValueCount
from regulars.catalog.model import AttributeType, Catalog
from regulars.sales.property_values import PropertyValues

pytestmark = pytest.mark.anyio


def with_properties(**properties):
    return [samples.line(product={"external_id": "SKU", "properties": properties})]


@pytest.fixture
async def tickets(desk):
    await desk.record(
        ticket("A", line_items=[*with_properties(size=42, organic=True), samples.line(product=None)]),
        ticket("B", line_items=[*with_properties(size="42"), *with_properties(size="XL")]),
        ticket("C", line_items=[samples.line(product={"name": "no properties"})]),
        ticket("D", line_items=[samples.line(product={"properties": None})]),
    )


async def test_every_line_counts_whatever_type_its_value_was_sent_in(tickets, desk):
    values = PropertyValues()
    async with desk.database.reading() as tx:
        batch = await values.read_batch(tx, desk.organization_id, after=START, rows_max=10, key=None)
        one_key = await values.read_batch(tx, desk.organization_id, after=START, rows_max=10, key="organic")
        rest = await values.read_batch(tx, desk.organization_id, after=batch.last, rows_max=10, key=None)
    sizes = {ValueCount("size", "42", 2, ()), ValueCount("size", "XL", 1, ())}
    assert batch.rows == 4
    assert set(batch.values) == {*sizes, ValueCount("organic", "true", 1, ())}
    assert one_key.values == [ValueCount("organic", "true", 1, ())]
    assert rest == ValueBatch(0, None, [])


async def test_a_property_is_previewed_like_an_attribute(tickets, desk):
    async with desk.database.transaction() as tx:
        await counting.preview_type(tx, desk.organization_id, Catalog.PRODUCTS, "size", declared=AttributeType.NUMBER)
    queue = CountQueue({Catalog.PRODUCTS: PropertyValues()})
    while await queue.run_pass(desk.database, desk.organization_id):
        pass
    async with desk.database.reading() as tx:
        count = await counting.find_preview(tx, desk.organization_id, Catalog.PRODUCTS, "size")
        tallies = await counting.find_tallies(tx, desk.organization_id, count)
    assert (tallies["size"].readable, tallies["size"].samples) == (2, {"XL": 1})
