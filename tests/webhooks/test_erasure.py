"""What webhooks keep of a person who is erased: ids, and nothing that was said or answered about them."""

import pytest
from tests.privacy.people import whole_database
from tests.webhooks.shop import NUMBER

from regulars.kit.refusals import NotPossible
from regulars.privacy.facts import ProfileErased
from regulars.privacy.jobs import anonymise_stragglers
from regulars.webhooks import find, replay

pytestmark = pytest.mark.anyio


async def test_payloads_and_stored_answers_are_blanked_and_what_waits_is_cancelled(shop, receiver):
    await shop.create(receiver.url)
    receiver.answer = b"HTTP/1.1 500 Oops\r\ncontent-length: 10\r\n\r\nPersephone"
    await shop.upsert("a", first_name="Persephone", phone_number=NUMBER)
    await shop.consent("a")
    await shop.upsert("b", first_name="Otto")
    await shop.deliver()
    before = await whole_database(shop.database, shop.organization_id)
    assert "Persephone" in before
    assert NUMBER in before
    await shop.erase("a")
    left = await whole_database(shop.database, shop.organization_id)
    # What the receiver said about Otto is his.
    about_others = [line for line in left.splitlines() if "Persephone" in line and '"answer"' not in line]
    assert about_others == []
    assert NUMBER not in left
    states = {one.type: one.state for one in await shop.deliveries() if one.state == "cancelled"}
    assert set(states) == {"profile.created", "subscription.created"}
    cancelled = next(one for one in await shop.deliveries(state="cancelled"))
    details = await shop.do(find.find_details, cancelled.id)
    assert details.body is None
    assert {attempt.answer for attempt in details.attempts} <= {None}
    with pytest.raises(NotPossible, match="erased"):
        await shop.do(replay.replay_delivery, cancelled.id)


async def test_what_was_delivered_stays_delivered_without_its_content(shop, receiver):
    await shop.deliver_to(receiver.url, first_name="Persephone")
    await shop.erase("a")
    await shop.deliver()
    assert {(one.type, one.state) for one in await shop.deliveries()} == {
        ("profile.created", "delivered"),
        ("profile.deleted", "delivered"),
    }
    assert "Persephone" not in await whole_database(shop.database, shop.organization_id)


async def test_a_message_that_was_being_made_meanwhile_is_found_by_the_pass_for_stragglers(shop, receiver):
    await shop.create(receiver.url)
    await shop.upsert("a", first_name="Persephone")
    await shop.run_listeners()
    async with shop.database.transaction() as tx:
        rows = await tx.fetch("SELECT id, body, profile_id FROM webhook_messages")
    await shop.erase("a")
    async with shop.database.transaction() as tx:
        # As if its transaction had committed after the erasure looked.
        await tx.execute("UPDATE webhook_messages SET body = %s WHERE id = %s", (rows[0][1], rows[0][0]))
        await tx.execute("UPDATE webhook_deliveries SET state = 'pending', due_at = created_at")
    async with shop.database.transaction() as tx:
        await anonymise_stragglers(tx, shop.organization_id, [ProfileErased(rows[0][2], tx.now)])
    await shop.deliver()
    assert [one.event["type"] for one in receiver.received] == ["profile.deleted"]


async def test_a_delivery_whose_content_was_erased_after_its_claim_is_not_sent(shop, receiver):
    await shop.create(receiver.url)
    await shop.upsert("a", first_name="Persephone")
    await shop.run_listeners()
    async with shop.database.transaction() as tx:
        await tx.execute("UPDATE webhook_messages SET body = NULL")
    await shop.send()
    assert receiver.received == []
    assert [one.state for one in await shop.deliveries()] == ["cancelled"]


async def test_operators_see_how_deliveries_end(shop, receiver):
    await shop.deliver_to(receiver.url)
    receiver.answer = b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"
    await shop.upsert("b")
    await shop.deliver()
    page = shop.metrics.render().decode()
    assert "# TYPE regulars_webhook_deliveries_total counter" in page
    # The second name is that of earlier releases.
    for name in ("regulars_webhook_deliveries_total", "regulars_webhook_deliveries"):
        assert f'{name}{{outcome="delivered",worker="0"}} 1.0' in page
        assert f'{name}{{outcome="refused",worker="0"}} 1.0' in page
    assert 'regulars_webhook_endpoints_failing{worker="0"} 1.0' in page
