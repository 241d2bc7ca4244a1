"""Recording a list of sales: who was first, what it creates, and what a refusal or a duplicate leaves behind."""

import asyncio

import msgspec
import pytest
from tests.sales.desk import summarize, ticket
from tests.support import samples
from tests.support.waiting import until_locked

from regulars.kit.ids import PROFILE, new_uuid
from regulars.sales.encode import encode_sale
from regulars.stores.model import StoreNotFound

pytestmark = pytest.mark.anyio


async def test_duplicates_in_one_list_are_answered_in_order_of_arrival(desk):
    outcomes = await desk.record(ticket("A"), ticket("B"), ticket("A"), ticket("A", total_amount_cents=1), ticket("B"))
    assert [summarize(outcome) for outcome in outcomes] == [
        ("new", False),
        ("new", False),
        ("known", False),
        ("known", True),
        ("known", False),
    ]
    assert outcomes[0].sale == outcomes[2].sale == outcomes[3].sale
    assert await desk.tickets() == ["A", "B"]
    assert await desk.published_sales() == [sorted(str(outcome.sale.id) for outcome in outcomes[:2])]


async def test_a_repeated_ticket_is_known_and_leaves_nothing(desk):
    sale = ticket("A", profile_id="ada")
    [first] = await desk.record(sale)
    before = await desk.rows("SELECT e::text FROM sales_events e WHERE organization_id = %s")
    [second, third] = await desk.record(sale, sale)
    assert summarize(second) == summarize(third) == ("known", False)
    assert encode_sale(second.sale) == encode_sale(first.sale)
    assert await desk.rows("SELECT e::text FROM sales_events e WHERE organization_id = %s") == before
    assert len(await desk.published_sales()) == 1
    assert await desk.rows("SELECT 1 FROM ticket_collision_totals WHERE organization_id = %s") == []


async def test_the_first_that_can_go_in_is_the_first_even_after_one_that_cannot(desk):
    outcomes = await desk.record(
        ticket("A", store_id="nowhere", profile_id="ghost"),
        ticket("A", profile_id="prof_01h455vb4pex5vsknk084sn02q"),
        ticket("A", profile_id="ada"),
        ticket("A", store_id="nowhere", profile_id="ghost"),
    )
    assert [summarize(outcome) for outcome in outcomes] == [
        ("STORE_NOT_FOUND",),
        ("PROFILE_NOT_FOUND",),
        ("new", False),
        ("known", True),
    ]
    assert await desk.customers() == ["ada"]


async def test_a_known_ticket_is_known_although_its_store_is_not_and_in_the_future_it_is_refused(desk):
    await desk.record(ticket("A", profile_id="ada"))
    [known, refused] = await desk.record(
        ticket("A", store_id="nowhere", profile_id="ghost"), ticket("A", occurred_at=samples.ahead(hours=1))
    )
    assert (summarize(known), summarize(refused)) == (("known", True), ("OCCURRED_AT_IN_FUTURE",))
    assert await desk.customers() == ["ada"]


async def test_light_profiles_are_made_once_and_only_for_sales_that_go_in(desk):
    await desk.record(ticket("A"))
    outcomes = await desk.record(
        ticket("B", profile_id="new"),
        ticket("C", profile_id="new"),
        ticket("A", profile_id="only-in-a-duplicate"),
        ticket("B", profile_id="only-in-a-duplicate-too"),
        ticket("D", profile_id="other"),
    )
    assert await desk.customers() == ["new", "other"]
    assert outcomes[0].sale.profile == outcomes[1].sale.profile
    [again] = await desk.record(ticket("E", profile_id=PROFILE.encode(outcomes[0].sale.profile.id)))
    assert again.sale.profile.external_id == "new"


async def test_at_most_ten_distinct_collisions_are_stored_and_all_are_counted(desk):
    sale = ticket("A")
    await desk.record(sale, ticket("B"))
    attempts = [msgspec.structs.replace(sale, total_amount_cents=amount) for amount in range(15)]
    await desk.record(*attempts[:4], attempts[0], attempts[0])
    await desk.record(*attempts)
    await desk.record(attempts[0], attempts[14])
    stored = await desk.rows(
        "SELECT (attempt->>'total_amount_cents')::int, times_seen FROM ticket_collisions"
        " WHERE organization_id = %s ORDER BY 1"
    )
    assert stored == [(0, 5), (1, 2), (2, 2), (3, 2), *[(amount, 1) for amount in range(4, 10)]]
    assert await desk.rows("SELECT times_seen FROM ticket_collision_totals WHERE organization_id = %s") == [(23,)]


async def test_a_sale_that_loses_a_race_is_the_winners_and_takes_its_light_profile_back(desk):
    """The other process has inserted its sale and not committed when ours comes to insert."""
    other = await desk.elsewhere()
    async with other:
        identifier, store = new_uuid(), (await desk.rows("SELECT id FROM stores WHERE organization_id = %s"))[0][0]
        await other.execute(
            "INSERT INTO sales_events (organization_id, id, external_id, type, occurred_at, store_id, currency,"
            " total_amount_cents, total_discount_cents, line_items, created_at)"
            " VALUES (%s, %s, 'A', 'PURCHASE', now(), %s, 'EUR', 1, 0, '[]', now())",
            (desk.organization_id, identifier, store),
        )
        ours = asyncio.create_task(desk.record(ticket("A", profile_id="ghost"), ticket("B", profile_id="ada")))
        await until_locked(desk.database)
        assert not ours.done()
        await other.commit()
    lost, own = await ours
    assert (summarize(lost), summarize(own)) == (("known", True), ("new", False))
    assert lost.sale.id == identifier
    assert await desk.customers() == ["ada"]
    assert await desk.published_sales() == [[str(own.sale.id)]]


async def test_an_empty_list_and_a_list_of_refusals_publish_nothing(desk):
    assert await desk.record() == []
    assert [type(outcome) for outcome in await desk.record(ticket("A", store_id="x"))] == [StoreNotFound]
    assert await desk.published_sales() == []
