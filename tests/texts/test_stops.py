"""A stop is one row: queues set waiting rows aside when they meet them, once, and make them due when it ends."""

from datetime import timedelta

import pytest
from tests.support.gateway import OPEN

from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts import send, stops
from regulars.texts.errors import MessagingError
from regulars.texts.model import SkipReason
from regulars.texts.providers.base import Unclear
from regulars.texts.request import resend
from regulars.texts.settings.model import SmsSettings

# The version of each queued text, which changes with every write of its row.
VERSIONS = "SELECT id, xmin::text, held_by FROM texts WHERE organization_id = %s AND state = 'queued' ORDER BY id"


@pytest.fixture
def desk(desk, monkeypatch):
    desk.settings(SmsSettings(rules=OPEN, caps=()))
    desk.subscribe()
    monkeypatch.setattr(stops, "SET_ASIDE_MAX", 2)
    monkeypatch.setattr(send, "SET_ASIDE_MAX", 2)
    return desk


def order_from(desk, journey_id):
    return desk.order(origin_kind=OriginKind.JOURNEY, link_origin=(journey_id, "1"))


def pause(desk, journey_id):
    async def act(tx):
        await stops.lock_claims(tx, desk.organization_id)
        await stops.stop(tx, desk.organization_id, journey_id)

    desk.do(act)


def resume(desk, journey_id):
    desk.do(lambda tx: stops.resume(tx, desk.organization_id, journey_id))


def hold(desk):
    texting = desk.texting
    desk.do(lambda tx: stops.hold(tx, desk.organization_id, texting, reason="A test."))


def release(desk):
    texting = desk.texting
    desk.do(lambda tx: stops.release(tx, desk.organization_id, texting))


def one_pass(desk, queue=None):
    queue = queue or desk.texts_queue

    async def run():
        await queue.run_pass(desk.database, desk.organization_id)
        await queue.finish()

    desk.runner.run(run())


def held_by(desk):
    return [row[2] for row in desk.sql(VERSIONS)]


def test_other_texts_leave_from_behind_many_of_a_paused_journey_which_are_set_aside_once(desk):
    paused, other = new_uuid(), new_uuid()
    for _ in range(5):
        order_from(desk, paused)
    before = desk.sql(VERSIONS)
    pause(desk, paused)
    # A pause writes none of what waits.
    assert desk.sql(VERSIONS) == before
    order_from(desk, other)
    desk.order(origin_kind=OriginKind.ANSWER)
    desk.texts_queue.batch_rows = 2
    one_pass(desk)
    assert len(desk.gateway.sent) == 2
    assert held_by(desk) == [paused, paused, None, None, None]
    for _ in range(2):
        one_pass(desk)
    set_aside = desk.sql(VERSIONS)
    assert {row[2] for row in set_aside} == {paused}
    # Those that wait for an earlier pause are not written again, and none of them is due.
    for _ in range(2):
        order_from(desk, paused)
        one_pass(desk)
    assert desk.sql(VERSIONS)[:5] == set_aside
    assert desk.sql("SELECT FROM texts WHERE organization_id = %s AND due_at < expires_at") == []


def test_what_was_set_aside_becomes_due_a_few_at_a_time_and_a_new_pause_ends_that(desk):
    journey_id = new_uuid()
    for _ in range(5):
        order_from(desk, journey_id)
    pause(desk, journey_id)
    for _ in range(3):
        one_pass(desk)
    resume(desk, journey_id)
    one_pass(desk, desk.resumed)
    assert held_by(desk) == [None, None, journey_id, journey_id, journey_id]
    pause(desk, journey_id)
    one_pass(desk, desk.resumed)
    desk.turn()
    assert held_by(desk) == [journey_id] * 5
    resume(desk, journey_id)
    desk.turn()
    assert desk.texts() == [("sent", None)] * 5
    assert desk.sql("SELECT FROM stopped_origins WHERE organization_id = %s") == []


def test_a_hold_sets_all_texts_aside_and_one_that_follows_a_release_stops_the_release(desk):
    journey_id = new_uuid()
    pause(desk, journey_id)
    order_from(desk, journey_id)
    one_pass(desk)
    hold(desk)
    for _ in range(4):
        desk.order()
    for _ in range(2):
        one_pass(desk)
    everything = desk.organization_id
    assert held_by(desk) == [journey_id] + [everything] * 4
    release(desk)
    one_pass(desk, desk.resumed)
    hold(desk)
    one_pass(desk, desk.resumed)
    assert held_by(desk) == [journey_id, None, None, everything, everything]
    desk.turn()
    assert desk.gateway.sent == []
    release(desk)
    desk.turn()
    # The pause of the journey goes on.
    assert desk.texts() == [("queued", None)] + [("sent", None)] * 4


@pytest.mark.parametrize("is_on_hold", [False, True])
def test_a_text_that_expires_while_it_is_stopped_ends_at_its_expiry(desk, is_on_hold):
    journey_id = new_uuid()
    order_from(desk, journey_id)
    if is_on_hold:
        hold(desk)
    else:
        pause(desk, journey_id)
    one_pass(desk)
    [(due_at, expires_at)] = desk.sql("SELECT due_at, expires_at FROM texts WHERE organization_id = %s")
    assert due_at == expires_at
    desk.alter("UPDATE texts SET due_at = created_at, expires_at = created_at WHERE organization_id = %s")
    one_pass(desk)
    assert (desk.texts(), desk.gateway.sent) == ([("skipped", "expired")], [])


def test_a_text_of_a_paused_journey_is_not_sent_again_by_a_user(desk):
    journey_id = new_uuid()
    desk.gateway.answer = Unclear("lost")
    text_id = order_from(desk, journey_id)
    desk.turn()
    pause(desk, journey_id)
    with pytest.raises(MessagingError, match="The journey is paused; resume it first"):
        desk.do(lambda tx: resend(tx, desk.organization_id, text_id))


def test_setting_texts_aside_locks_no_stop_of_what_was_cancelled(desk):
    paused, cancelled, texts = new_uuid(), new_uuid(), desk.texts_queue
    order_from(desk, paused)
    pause(desk, paused)
    desk.do(lambda tx: stops.stop(tx, desk.organization_id, cancelled, reason=SkipReason.CANCELLED))

    async def list_unlocked():
        async with desk.database.transaction() as tx:
            until = tx.now + timedelta(seconds=15)
            await texts.claim(tx, desk.organization_id, limit=1, lowest=2, owner=texts.owner, until=until)
            async with desk.database.transaction() as other:
                statement = "SELECT origin_id FROM stopped_origins WHERE organization_id = %s FOR UPDATE SKIP LOCKED"
                return await other.fetch_column(statement, (desk.organization_id,))

    assert desk.runner.run(list_unlocked()) == [cancelled]
    assert held_by(desk) == [paused]
