"""Exactly one event for each change that the API would show, and none for what changed nothing."""

from uuid import uuid4

import pytest
from tests.sales.desk import Desk, ticket
from tests.support.database_fixtures import SECRET
from tests.webhooks.shop import NUMBER, Shop

from regulars.consent.inbound import Reply, record_inbound_stop
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles
from regulars.webhooks import manage
from regulars.webhooks.interests import HAS_ENDPOINT_FOR_MESSAGES, HAS_ENDPOINT_FOR_SALES
from regulars.webhooks.model import FAMILIES

pytestmark = pytest.mark.anyio


def types(receiver):
    return [one.event["type"] for one in receiver.received]


async def test_a_profile_that_is_created_and_changed_is_sent_each_time(shop, receiver):
    await shop.create(receiver.url)
    await shop.upsert("a", first_name="Ada")
    await shop.upsert("a", first_name="Ada")
    await shop.upsert("a", attributes={"size": "M"})
    await shop.deliver()
    assert types(receiver) == ["profile.created", "profile.updated"]
    data = receiver.received[1].event["data"]
    assert (data["external_id"], data["first_name"], data["attributes"]) == ("a", "Ada", {"size": "M"})
    assert receiver.received[1].event["timestamp"] == data["updated_at"]


async def test_each_change_of_a_batch_is_sent(shop, receiver):
    await shop.create(receiver.url)
    await shop.do(upsert_profiles, [ProfileUpsert(external_id=f"c{number}") for number in range(30)])
    await shop.deliver()
    assert sorted(one.event["data"]["external_id"] for one in receiver.received) == sorted(f"c{n}" for n in range(30))
    assert len({one.id for one in receiver.received}) == 30


async def test_a_light_profile_made_by_a_sale_is_sent(shop, receiver):
    await shop.create(receiver.url)
    desk = Desk(shop.database, shop.organization_id)
    await desk.open_store("PARIS-01")
    await desk.record(ticket("T1", profile_id="ada"), ticket("T2", profile_id="ada"))
    await shop.deliver()
    assert [(one.event["type"], one.event["data"]["external_id"]) for one in receiver.received] == [
        ("profile.created", "ada")
    ]


async def test_every_outcome_of_consent_that_changed_something_is_sent_once(shop, receiver):
    await shop.create(receiver.url)
    await shop.upsert("a", phone_number=NUMBER)
    await shop.consent("a")
    await shop.consent("a")
    await shop.consent("a", source="CHECKOUT")
    await shop.withdraw()
    await shop.withdraw()
    reply = Reply(phone_number="+33698765432", text="STOP", message_id="m")
    await shop.do(record_inbound_stop, [reply], secret=SECRET)
    await shop.deliver()
    consents = [one.event for one in receiver.received if one.event["type"].startswith("subscription.")]
    assert [event["type"] for event in consents] == [
        "subscription.created",
        "subscription.updated",
        "subscription.unsubscribed",
        "subscription.unsubscribed",
    ]
    assert [event["data"]["outcome"] for event in consents] == ["created", "updated", "unsubscribed", "unsubscribed"]
    assert consents[0]["data"]["subscription"]["phone_number"] == NUMBER
    assert consents[0]["data"]["subscription"]["profile"]["external_id"] == "a"


async def test_an_erasure_is_sent_with_ids_and_what_waited_about_the_person_is_not_sent(shop, receiver):
    created = await shop.create(receiver.url)
    await shop.do(manage.disable_endpoint, created.endpoint.id)
    await shop.do(manage.enable_endpoint, created.endpoint.id)
    await shop.upsert("a", phone_number=NUMBER, first_name="Persephone")
    await shop.consent("a")
    await shop.upsert("b", first_name="Otto")
    await shop.run_listeners()
    await shop.erase("a")
    await shop.deliver()
    assert sorted(types(receiver)) == ["profile.created", "profile.deleted", "subscription.unsubscribed"]
    by_type = {one.event["type"]: one.event["data"] for one in receiver.received}
    assert by_type["profile.created"]["first_name"] == "Otto"
    assert by_type["profile.deleted"].keys() == {"id", "external_id"}
    assert by_type["profile.deleted"]["external_id"] == "a"
    assert by_type["subscription.unsubscribed"]["subscription"]["phone_number"] is None
    assert all(b"Persephone" not in one.body and NUMBER.encode() not in one.body for one in receiver.received)


async def test_an_endpoint_gets_the_types_it_takes(shop, receiver):
    await shop.create(receiver.url, "subscription.*", "profile.deleted")
    await shop.upsert("a", phone_number=NUMBER)
    await shop.consent("a")
    await shop.erase("a")
    await shop.deliver()
    assert sorted(types(receiver)) == ["profile.deleted", "subscription.unsubscribed"]


async def test_events_while_an_endpoint_is_disabled_are_not_made_for_it(shop, receiver):
    created = await shop.create(receiver.url)
    await shop.upsert("before")
    await shop.run_listeners()
    await shop.do(manage.disable_endpoint, created.endpoint.id)
    await shop.upsert("meanwhile")
    await shop.deliver()
    assert receiver.received == []
    endpoint = await shop.endpoint(created)
    assert (endpoint.state, endpoint.disabled_by) == ("disabled", "person")
    assert "gets no events" in endpoint.note
    await shop.do(manage.enable_endpoint, created.endpoint.id)
    await shop.upsert("after")
    await shop.deliver()
    assert [one.event["data"]["external_id"] for one in receiver.received] == ["before", "after"]


async def test_without_an_enabled_endpoint_a_write_leaves_nothing_in_the_outbox(shop, receiver):
    created = await shop.create(receiver.url)
    await shop.do(manage.delete_endpoint, created.endpoint.id)
    await shop.upsert("a")
    async with shop.database.transaction() as tx:
        assert await tx.fetch("SELECT 1 FROM outbox WHERE organization_id = %s", (shop.organization_id,)) == []


async def test_another_organization_s_events_stay_there(shop, receiver, database):
    await shop.create(receiver.url)
    other = Shop(database, uuid4())
    await other.upsert("secret")
    await other.deliver()
    await shop.deliver()
    assert receiver.received == []


def test_the_conditions_of_the_listeners_name_every_event_of_their_family():
    for family, condition in (("sales_event.*", HAS_ENDPOINT_FOR_SALES), ("message.*", HAS_ENDPOINT_FOR_MESSAGES)):
        assert all(f"'{name}'" in condition for name in (family, *FAMILIES[family]))
