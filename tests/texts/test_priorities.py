"""Replies leave before texts of persons and journeys, and these before campaigns, also beside a slow provider."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from tests.support.gateway import OPEN
from tests.texts.test_sending_cost import TEXTS_READ

from regulars.inbox.receive import IncomingMessage, receive_reply
from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts.providers.base import Accepted
from regulars.texts.queries.claims import find_due_texts
from regulars.texts.request import TextOrder, request_texts
from regulars.texts.settings.model import SmsSettings
from regulars.work.loop import Loop

WAITING_CAMPAIGN = """
    INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, number_hash, phone_number, body, parts,
                       state, due_at, expires_at, created_at, priority)
    SELECT %s, gen_random_uuid(), 'campaign', gen_random_uuid(), '1', decode(md5(it::text), 'hex'), '+33600000000', '',
           1, 'queued', now() + (it - 1000) * interval '1 second', now() + interval '1 day', now(), 2
    FROM generate_series(1, 2000) AS it
"""


def numbers(first, count):
    return [f"+3361{first + index:07d}" for index in range(count)]


def test_replies_leave_first_and_campaigns_last(desk):
    desk.subscribe(*numbers(0, 6))
    desk.order_all(OriginKind.CAMPAIGN, numbers(0, 2))
    desk.order_all(OriginKind.JOURNEY, numbers(2, 1))
    desk.order_all(OriginKind.PERSON, numbers(3, 1))
    desk.reply("STOP", number=numbers(4, 1)[0])
    desk.texts_queue.batch_rows = 2
    desk.turn()
    assert [text.phone_number for text in desk.gateway.sent] == [numbers(at, 1)[0] for at in (4, 2, 3, 0, 1)]


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_a_claim_reads_few_rows_however_many_texts_of_campaigns_wait(desk, is_analyzed):
    desk.alter(WAITING_CAMPAIGN)
    desk.subscribe()
    desk.order_all(OriginKind.PERSON, numbers(0, 1))
    if is_analyzed:
        desk.do(lambda tx: tx.execute("ANALYZE texts"))

    async def count_read(tx):
        # The planner reads all of a table as small as this one.
        await tx.execute("SELECT set_config('enable_seqscan', 'off', true)")
        [(before,)] = await tx.fetch(TEXTS_READ)
        found = await find_due_texts(tx, desk.organization_id, lowest=2, after=None, limit=20)
        following = await find_due_texts(tx, desk.organization_id, lowest=2, after=found[-1], limit=20)
        [(after,)] = await tx.fetch(TEXTS_READ)
        return found, following, after - before

    found, following, read = desk.do(count_read)
    assert [due.priority for due in found] == [1] + [2] * 19
    assert [due.priority for due in following] == [2] * 20
    assert found[-1].due_at < following[0].due_at
    assert read <= 50


def test_a_slow_provider_leaves_slots_for_replies_and_for_persons(desk):
    desk.subscribe(*numbers(0, 290))
    answered = asyncio.Event()

    async def hang(text):
        await answered.wait()
        return Accepted(f"sid-{text.text_id}")

    desk.gateway.answer = hang

    async def take_all():
        while await desk.texts_queue.run_pass(desk.database, desk.organization_id):
            pass

    def in_flight():
        desk.runner.run(take_all())
        rows = desk.sql(
            "SELECT origin_kind, count(*) FROM texts WHERE organization_id = %s AND state = 'sending' GROUP BY 1"
        )
        return Counter(dict(rows))

    desk.order_all(OriginKind.CAMPAIGN, numbers(0, 200))
    assert in_flight() == {"campaign": 80}
    desk.order_all(OriginKind.JOURNEY, numbers(200, 60))
    assert in_flight() == {"campaign": 80, "journey": 32}
    for number in numbers(260, 20):
        desk.reply("STOP", number=number)
    assert in_flight() == {"campaign": 80, "journey": 32, "stop": 16}
    answered.set()
    desk.runner.run(desk.texts_queue.finish())
    desk.turn()
    assert Counter(desk.texts()) == {("sent", None): 280}


def test_a_confirmation_and_a_journeys_text_leave_beside_5000_texts_of_a_campaign(desk, api_database_url):
    """Beside a provider that has not answered yet: neither waits until a text of the campaign is out of the way."""
    # A call that takes as long as its claim is given up, which frees its slot.
    desk.texts_queue.claim_for = timedelta(minutes=10)
    desk.settings(SmsSettings(rules=OPEN, caps=()))
    desk.subscribe(*numbers(0, 202))
    desk.order_all(OriginKind.CAMPAIGN, numbers(0, 200) * 25)
    in_flight, is_over = asyncio.Event(), asyncio.Event()
    arrived = {number: asyncio.Event() for number in numbers(200, 2)}

    async def answer_late(text):
        if len(desk.gateway.sent) == 80:
            in_flight.set()
        if text.phone_number in arrived:
            arrived[text.phone_number].set()
        await is_over.wait()
        return Accepted(f"sid-{text.text_id}")

    desk.gateway.answer = answer_late

    async def scenario(texting):
        async with database_with_loop(api_database_url, desk.texts_queue, desk.organization_id) as (database, loop):
            loop.wake("texts", desk.organization_id)
            async with asyncio.timeout(60):
                await in_flight.wait()
            stop, journey = arrived
            incoming = IncomingMessage(provider="simulator", provider_id="1", phone_number=stop, body="STOP")
            order = TextOrder(
                origin_kind=OriginKind.JOURNEY, origin_id=new_uuid(), step="1", rendered="Hello", phone_number=journey
            )
            async with database.transaction() as tx:
                await receive_reply(tx, desk.organization_id, incoming, texting=texting)
                await request_texts(tx, desk.organization_id, [order], texting=texting)
            try:
                async with asyncio.timeout(60):
                    await arrived[stop].wait()
                    await arrived[journey].wait()
            finally:
                is_over.set()

    desk.runner.run(scenario(desk.texting))


@asynccontextmanager
async def database_with_loop(url, queue, organization_id):
    """A worker of one queue and organization, which is woken and does not poll."""
    queue.poll_every_s = 3600.0
    run_pass = queue.run_pass

    async def run_own_pass(database, other_id):
        return other_id == organization_id and await run_pass(database, other_id)

    queue.run_pass = run_own_pass
    database = Database(url, pool_max=4)
    await database.open()
    loop = Loop(database, [queue])
    database.after_commit = loop.wake
    running = asyncio.create_task(loop.run())
    try:
        yield database, loop
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await database.close()
