"""Many endpoints at once: none waits for one that hangs, and a worker that dies loses nothing."""

import asyncio
import os
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from tests.webhooks.receiver import another_receiver
from tests.webhooks.shop import Shop

from regulars.kit.refusals import NotPossible
from regulars.webhooks import events, find, manage, replay
from regulars.webhooks.delivery import queue as queue_module
from regulars.webhooks.delivery import send as sending
from regulars.webhooks.delivery.schedule import CLAIMED_MAX, CONNECTIONS_PER_ENDPOINT_MAX
from regulars.webhooks.model import ENDPOINTS_MAX
from regulars.webhooks.personal import sweep_old_messages
from regulars.work.loop import Loop

pytestmark = pytest.mark.anyio

ENDPOINTS_EACH = 20
ENDPOINTS = int(os.environ.get("REGULARS_TEST_ENDPOINTS", "100"))


async def proven(shop, url):
    """An endpoint that has answered before."""
    created = await shop.create(url)
    await shop.do(events.ping, created.endpoint.id)
    await shop.send()
    return created


async def test_eight_are_under_way_at_once_and_first_attempts_start_in_order(shop, receiver):
    await proven(shop, receiver.url)
    receiver.delay_s = 0.05
    for number in range(40):
        await shop.upsert(f"c{number:02}")
    await shop.deliver()
    assert receiver.most_at_once == CONNECTIONS_PER_ENDPOINT_MAX
    names = [one.event["data"]["external_id"] for one in receiver.received[1:]]
    assert sorted(names) == [f"c{number:02}" for number in range(40)]
    assert set(names[:8]) == {f"c{number:02}" for number in range(8)}


async def test_what_could_outlive_its_claim_is_given_back_and_does_not_count(shop, receiver, monkeypatch):
    await proven(shop, receiver.url)
    receiver.delay_s = 1.0
    monkeypatch.setattr(queue_module, "START_WITHIN_S", 0.5)
    for number in range(20):
        await shop.upsert(f"c{number}")
    await shop.run_listeners()
    await shop.queue.run_pass(shop.database, shop.organization_id)
    while shop.queue._acting or shop.queue._completing:
        await asyncio.gather(*shop.queue._acting, *shop.queue._completing.values())
    left = await shop.deliveries(state="pending")
    assert len(left) == 20 - CONNECTIONS_PER_ENDPOINT_MAX
    assert {one.attempts for one in left} == {0}
    assert CLAIMED_MAX > 20


async def test_hung_endpoints_hold_one_connection_each_and_the_others_go_on(database, shop, monkeypatch):
    """Three of ten endpoints of several organizations never answer.

    REGULARS_TEST_ENDPOINTS=1000 bin/test tests/webhooks/test_fairness.py -k hung --timeout 600
    """
    monkeypatch.setattr(sending, "TIMEOUT_S", 8.0)
    shops = [shop, *(Shop(database, uuid4()) for _ in range(ENDPOINTS // ENDPOINTS_EACH - 1))]
    async with another_receiver() as hung, another_receiver() as quick:
        hung.delay_s = 3600
        for one in shops:
            for number in range(ENDPOINTS_EACH):
                await one.create(hung.url if number % 10 < 3 else quick.url)
            for number in range(3):
                await one.upsert(f"c{number}")
            await one.run_listeners()
        deliveries = shop.new_queue()
        loop = Loop(database, [deliveries])
        database.after_commit = loop.wake
        running = asyncio.create_task(loop.run())
        answering = len(shops) * ENDPOINTS_EACH * 7 // 10
        await quick.wait_for(answering * 3)
        assert hung.most_at_once <= len(shops) * ENDPOINTS_EACH * 3 // 10
        assert hung.most_at_once + quick.most_at_once <= sending.SOCKETS_MAX
        running.cancel()
        for task in deliveries._acting:
            task.cancel()
        await asyncio.gather(running, return_exceptions=True)
        database.after_commit = None


async def test_a_worker_that_dies_after_the_answer_delivers_again_with_the_same_id(shop, receiver):
    await shop.create(receiver.url)
    await shop.upsert("a")
    await shop.run_listeners()
    dead = shop.new_queue()
    (claim,) = await shop.claim(dead)
    outcome = await dead.act(shop.organization_id, claim)
    await dead.finish()
    await shop.later(seconds=31)
    await shop.send()
    assert len(receiver.received) == 2
    assert receiver.received[0].id == receiver.received[1].id
    async with shop.database.transaction() as tx:
        # The outcome of the one that was thought dead comes too late and changes nothing.
        await dead.complete(tx, shop.organization_id, [(claim, outcome)])
    (delivery,) = await shop.deliveries()
    assert (delivery.state, delivery.attempts) == ("delivered", 1)


async def test_an_endpoint_that_keeps_failing_is_only_probed_and_catches_up_afterwards(shop, receiver):
    created = await proven(shop, receiver.url)
    receiver.answer = b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"
    for number in range(25):
        await shop.upsert(f"c{number:02}")
    await shop.deliver()
    await shop.later(minutes=16)
    await shop.send()
    endpoint = await shop.endpoint(created)
    assert endpoint.health.probe_at is not None
    sent = len(receiver.received)
    await shop.later(minutes=2)
    await shop.send()
    assert len(receiver.received) == sent
    probed = set()
    for _ in range(3):
        await shop.later(minutes=6)
        await shop.send()
        sent += 1
        assert len(receiver.received) == sent
        probed.add(receiver.received[-1].id)
    # Each probe takes another message: a poisonous one cannot stand for all.
    assert len(probed) == 3
    receiver.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    await shop.later(hours=1)
    await shop.send()
    assert {one.state for one in await shop.deliveries(limit=100)} == {"delivered"}


async def test_five_days_of_failure_disable_an_endpoint(shop, receiver):
    receiver.answer = b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"
    created = await shop.deliver_to(receiver.url)
    await shop.later(days=5)
    await shop.send()
    endpoint = await shop.endpoint(created)
    assert (endpoint.state, endpoint.disabled_by) == ("disabled", "failures")
    assert "five days" in endpoint.note


async def test_a_replay_is_a_new_delivery_of_the_same_message(shop, receiver):
    created = await shop.deliver_to(receiver.url)
    (first,) = await shop.deliveries()
    await shop.do(replay.replay_delivery, first.id)
    await shop.send()
    assert [one.id for one in receiver.received] == [receiver.received[0].id] * 2
    newest, _ = await shop.deliveries()
    assert (newest.is_replay, newest.message_id) == (True, first.message_id)
    assert await shop.do(replay.replay_range, created.endpoint.id, since=first.created_at) == 1
    await shop.send()
    assert len(receiver.received) == 3


async def test_only_what_never_arrived_is_replayed_if_asked_for(shop, receiver):
    created = await shop.create(receiver.url)
    await shop.upsert("arrives")
    await shop.deliver()
    receiver.answer = b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"
    await shop.upsert("fails")
    await shop.deliver()
    since = (await shop.deliveries())[-1].created_at
    async with shop.database.transaction() as tx:
        await tx.execute("UPDATE webhook_deliveries SET state = 'failed', due_at = NULL WHERE state = 'pending'")
    receiver.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    assert await shop.do(replay.replay_range, created.endpoint.id, since=since, only_failed=True) == 1
    await shop.send()
    assert receiver.received[-1].event["data"]["external_id"] == "fails"
    assert await shop.do(replay.replay_range, created.endpoint.id, since=since, only_failed=True) == 0


async def test_a_range_is_read_in_batches_and_each_message_sent_once(shop, receiver, monkeypatch):
    created = await shop.create(receiver.url)
    for name in "abcde":
        await shop.upsert(name)
    await shop.deliver()
    since = (await shop.deliveries())[-1].created_at
    monkeypatch.setattr(replay, "BATCH_DELIVERIES", 2)
    assert await shop.do(replay.replay_range, created.endpoint.id, since=since) == 5
    # Each has two deliveries now, and is one message still.
    assert await shop.do(replay.replay_range, created.endpoint.id, since=datetime.min.replace(tzinfo=UTC)) == 5
    monkeypatch.setattr(replay, "MESSAGES_MAX", 3)
    with pytest.raises(NotPossible, match="more than 3"):
        await shop.do(replay.replay_range, created.endpoint.id, since=since)


async def test_an_organization_has_a_limit_of_endpoints(shop, receiver):
    for _ in range(ENDPOINTS_MAX):
        await shop.create(receiver.url)
    with pytest.raises(manage.EndpointRefused, match="delete one"):
        await shop.create(receiver.url)


async def test_what_is_older_than_thirty_days_is_forgotten(shop, receiver):
    created = await shop.create(receiver.url)
    await shop.upsert("old")
    await shop.deliver()
    await shop.later(days=30)
    await shop.upsert("new")
    await shop.deliver()
    await sweep_old_messages(shop.database, shop.organization_id)
    assert [one.event["data"]["external_id"] for one in receiver.received] == ["old", "new"]
    (left,) = await shop.deliveries()
    details = await shop.do(find.find_details, left.id)
    assert '"external_id":"new"' in details.body
    await shop.do(manage.delete_endpoint, created.endpoint.id)
    await shop.later(days=31)
    await sweep_old_messages(shop.database, shop.organization_id)
    async with shop.database.transaction() as tx:
        assert await tx.fetch("SELECT 1 FROM webhook_endpoints") == []
