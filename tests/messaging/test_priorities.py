"""Replies leave before texts of persons and journeys, and these before campaigns, also beside a slow provider."""

import asyncio
from collections import Counter

from tests.messaging.test_sending_cost import TEXTS_READ

from regulars.messaging.model import OriginKind
from regulars.messaging.providers.base import Accepted
from regulars.messaging.queries.claims import find_due_numbers

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
    desk.queue.batch_rows = 2
    desk.turn()
    assert [text.phone_number for text in desk.gateway.sent] == [numbers(at, 1)[0] for at in (4, 2, 3, 0, 1)]


def test_a_claim_reads_few_rows_however_many_texts_of_campaigns_wait(desk):
    desk.alter(WAITING_CAMPAIGN)
    desk.subscribe()
    desk.order_all(OriginKind.PERSON, numbers(0, 1))

    async def count_read(tx):
        [(before,)] = await tx.fetch(TEXTS_READ)
        found = await find_due_numbers(tx, desk.organization_id, lowest=2, after=None, limit=20)
        following = await find_due_numbers(tx, desk.organization_id, lowest=2, after=found[-1], limit=20)
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
        while await desk.queue.run_pass(desk.database, desk.organization_id):
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
    desk.runner.run(desk.queue.finish())
    desk.turn()
    assert Counter(desk.texts()) == {("sent", None): 280}
