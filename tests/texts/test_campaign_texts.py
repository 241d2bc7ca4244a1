"""Texts of a campaign: their last moment, how it stops them, and the facts by which its totals move."""

import asyncio
from datetime import timedelta

import msgspec
import pytest
from tests.support.desk import NUMBER
from tests.support.gateway import ALWAYS, OPEN, only_on

from regulars.consent.chain import hash_number
from regulars.consent.numbers import TextNumber
from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts.errors import MessagingError
from regulars.texts.facts import MessagesChanged
from regulars.texts.gate import forecast_texts
from regulars.texts.model import SkipReason, TextState
from regulars.texts.providers.base import Accepted, NotAuthorized, NotReached, Unclear
from regulars.texts.receipts import apply_receipt
from regulars.texts.request import resend
from regulars.texts.send import TextQueue
from regulars.texts.settings.model import Cap, SmsSettings
from regulars.texts.stops import delete_texts_of_steps, stop_campaign
from regulars.texts.stops import resume as resume_stopped
from regulars.texts.template import MissingValue
from regulars.work.outbox import register_interest

CLAIMED_BEFORE = """
    UPDATE texts SET claimed_at = wanted.moment
    FROM (SELECT %s::uuid AS organization_id, %s::uuid AS id, %s::timestamptz AS moment) AS wanted
    WHERE texts.organization_id = wanted.organization_id AND texts.id = wanted.id
"""
OUTBOX = "SELECT payload::text FROM outbox WHERE organization_id = %s AND topic = %s ORDER BY id"


def read_changes(desk):
    """The changes that were published: previous state, state and reason, in order."""
    rows = desk.sql(OUTBOX, MessagesChanged.topic)
    facts = [fact for (payload,) in rows for fact in msgspec.json.decode(payload, type=list[MessagesChanged])]
    return [(fact.previous_state, fact.state, fact.reason) for fact in facts]


def watch_changes(desk):
    desk.do(lambda tx: register_interest(tx, desk.organization_id, MessagesChanged, needed_by="test"))


async def lose(_text):
    return Unclear("lost")


async def accept(text):
    return Accepted(f"sid-{text.text_id}")


def order_from_campaign(desk, campaign_id=None, **more):
    given = {"origin_id": campaign_id or new_uuid(), "step": str(new_uuid()), **more}
    return desk.order(origin_kind=OriginKind.CAMPAIGN, **given)


def test_nothing_leaves_after_the_last_moment_of_a_text(desk):
    desk.subscribe()
    now = desk.now()
    order_from_campaign(desk, expires_at=now - timedelta(seconds=1))
    desk.turn()
    assert desk.texts() == [("skipped", "expired")]
    order_from_campaign(desk, expires_at=now + timedelta(hours=1))
    desk.turn()
    assert desk.gateway.sent[0].until <= now + timedelta(hours=1)


def test_a_text_is_not_sent_again_after_its_campaigns_last_moment(desk):
    desk.settings(SmsSettings(rules=OPEN, caps=()))
    desk.subscribe()
    desk.gateway.answer = lose
    last_moment = desk.now() + timedelta(hours=1)
    text_id = order_from_campaign(desk, expires_at=last_moment)
    desk.turn()
    desk.do(lambda tx: resend(tx, desk.organization_id, text_id))
    assert desk.sql("SELECT expires_at FROM texts WHERE organization_id = %s") == [(last_moment,)]
    desk.turn()
    with pytest.raises(MessagingError, match="has passed"):
        desk.do(lambda tx: resend(tx, desk.organization_id, text_id), now=last_moment)
    assert desk.texts() == [("unknown", "lost")]


def test_a_change_of_a_text_names_the_state_before(desk):
    desk.settings(SmsSettings(rules=OPEN, caps=()))
    desk.subscribe()
    watch_changes(desk)
    desk.order(MissingValue("profile.first_name"))
    desk.order(number="+33612345679")
    desk.gateway.answer = lose
    text_id = desk.order()
    desk.turn()
    desk.do(lambda tx: resend(tx, desk.organization_id, text_id))
    desk.gateway.answer = accept
    desk.turn()
    texting = desk.texting
    desk.do(
        lambda tx: apply_receipt(
            tx,
            desk.organization_id,
            text_id,
            TextState.FAILED,
            provider_id=None,
            attempt="2",
            code="30003",
            is_stop=False,
            texting=texting,
        )
    )
    assert read_changes(desk) == [
        ("queued", "skipped", "missing_value: profile.first_name"),
        ("queued", "skipped", "no_consent"),
        ("sending", "unknown", "lost"),
        ("unknown", "queued", None),
        ("sending", "sent", None),
        ("sent", "failed", "undelivered 30003"),
    ]
    counted = desk.sql("SELECT state, texts, parts FROM text_totals WHERE organization_id = %s ORDER BY state")
    assert counted == [("failed", 1, 1), ("sent", 1, 1), ("skipped", 2, 1), ("unknown", 1, 1)]


async def stop_in(tx, desk, campaign_id, reason=None):
    steps = await tx.fetch_column("SELECT step FROM texts WHERE origin_id = %s", (campaign_id,))
    return await stop_campaign(tx, desk.organization_id, campaign_id, steps, skip_reason=reason)


def stop(desk, campaign_id, reason=None):
    return desk.do(lambda tx: stop_in(tx, desk, campaign_id, reason))


def resume(desk, campaign_id):
    desk.do(lambda tx: resume_stopped(tx, desk.organization_id, campaign_id))


def test_a_pause_deletes_what_is_queued_so_that_it_can_be_requested_again(desk):
    desk.subscribe()
    campaign_id = new_uuid()
    order_from_campaign(desk, campaign_id, step="a")
    desk.order(number="+33612345679")
    assert stop(desk, campaign_id) == {"a"}
    assert desk.texts() == [("queued", None)]
    # One that was requested all the same, or returned to the queue in the same moment, goes the same way.
    watch_changes(desk)
    order_from_campaign(desk, campaign_id, step="a")
    desk.turn()
    assert read_changes(desk) == [("queued", "returned", None), ("queued", "skipped", "no_consent")]
    resume(desk, campaign_id)
    order_from_campaign(desk, campaign_id, step="a")
    desk.turn()
    assert desk.texts() == [("skipped", "no_consent"), ("sent", None)]


def test_a_text_that_was_sent_remains_when_the_texts_of_its_step_are_deleted(desk):
    desk.subscribe()
    campaign_id = new_uuid()
    order_from_campaign(desk, campaign_id, step="sent")
    desk.turn()
    order_from_campaign(desk, campaign_id, step="queued")
    steps = ["sent", "queued"]
    desk.do(lambda tx: delete_texts_of_steps(tx, desk.organization_id, OriginKind.CAMPAIGN, campaign_id, steps))
    assert desk.texts() == [("sent", None)]


def test_a_cancellation_skips_what_is_queued_and_lasts(desk):
    desk.subscribe()
    campaign_id = new_uuid()
    order_from_campaign(desk, campaign_id, step="a")
    watch_changes(desk)
    assert stop(desk, campaign_id, SkipReason.CANCELLED) == {"a"}
    assert read_changes(desk) == [("queued", "skipped", "cancelled")]
    resume(desk, campaign_id)
    order_from_campaign(desk, campaign_id, step="b")
    desk.turn()
    assert desk.texts() == [("skipped", "cancelled")] * 2
    assert desk.gateway.sent == []


@pytest.mark.parametrize(
    ("reason", "change"),
    [(None, ("sending", "returned", None)), (SkipReason.CANCELLED, ("sending", "skipped", "cancelled"))],
)
@pytest.mark.parametrize("outcome", [NotReached("refused"), NotAuthorized("refused"), Unclear("lost")])
def test_a_text_that_is_being_sent_when_its_campaign_stops_does_not_return_to_the_queue(desk, reason, change, outcome):
    desk.subscribe()
    campaign_id = new_uuid()
    order_from_campaign(desk, campaign_id)
    watch_changes(desk)

    async def stop_meanwhile(_text):
        async with desk.database.transaction() as tx:
            await stop_in(tx, desk, campaign_id, reason)
        return outcome

    desk.gateway.answer = stop_meanwhile
    desk.turn()
    # One that may have left keeps its outcome.
    assert read_changes(desk) == [("sending", "unknown", "lost") if isinstance(outcome, Unclear) else change]
    assert desk.sql("SELECT count(*) FROM texts WHERE organization_id = %s AND state = 'queued'") == [(0,)]


def test_a_text_of_a_stopped_campaign_whose_sender_died_is_unknown_and_not_sent_again(desk):
    desk.settings(SmsSettings(rules=OPEN, caps=()))
    desk.subscribe()
    campaign_id = new_uuid()
    text_id = order_from_campaign(desk, campaign_id)

    async def claim_and_die():
        await desk.texts_queue.run_pass(desk.database, desk.organization_id)
        for task in desk.texts_queue._acting:
            task.cancel()
        await desk.texts_queue.finish()

    desk.runner.run(claim_and_die())
    assert stop(desk, campaign_id) == set()
    desk.alter("UPDATE texts SET due_at = now() - interval '1 s' WHERE organization_id = %s")
    desk.turn()
    assert [state for state, _ in desk.texts()] == ["unknown"]
    with pytest.raises(MessagingError, match="paused"):
        desk.do(lambda tx: resend(tx, desk.organization_id, text_id))
    stop(desk, campaign_id, SkipReason.CANCELLED)
    with pytest.raises(MessagingError, match="cancelled"):
        desk.do(lambda tx: resend(tx, desk.organization_id, text_id))
    assert desk.gateway.sent == []


def test_two_workers_claim_nothing_after_a_stop_has_committed(desk):
    numbers = [f"+3361{number:07d}" for number in range(300)]
    desk.subscribe(*numbers)
    campaign_id = desk.order_all(OriginKind.CAMPAIGN, numbers)
    is_under_way = asyncio.Event()
    claimed = "SELECT count(*) FROM texts WHERE organization_id = %s AND claimed_at IS NOT NULL"

    async def work(queue):
        while await queue.run_pass(desk.database, desk.organization_id):
            pass
        await queue.finish()

    async def accept_and_count(text):
        if len(desk.gateway.sent) >= 50:
            is_under_way.set()
        return await accept(text)

    async def scenario():
        queues = [desk.texts_queue, TextQueue({"simulator": desk.gateway})]
        for queue in queues:
            queue.batch_rows = 7
        desk.gateway.answer = accept_and_count
        workers = [asyncio.create_task(work(queue)) for queue in queues]
        await is_under_way.wait()
        async with desk.database.transaction() as tx:
            steps = await stop_in(tx, desk, campaign_id)
        async with desk.database.reading() as tx:
            [(at_stop,)] = await tx.fetch(claimed, (desk.organization_id,))
        await asyncio.gather(*workers)
        return steps, at_stop

    steps, at_stop = desk.runner.run(scenario())
    assert desk.sql(claimed) == [(at_stop,)]
    assert len(desk.gateway.sent) == at_stop == 300 - len(steps)
    assert 50 <= at_stop < 300


def test_a_forecast_says_when_the_caps_and_the_hours_allow_one_more_text(desk):
    other, german, unknown = "+33612345679", "+4915112345678", "+88312345678"
    now = desk.now()
    weekday = (now + timedelta(days=2)).weekday()
    desk.settings(SmsSettings(rules={"FR": ALWAYS, "DE": only_on(weekday)}, caps=(Cap(1, 24), Cap(2, 72))))
    desk.subscribe(NUMBER, other, german)
    for hours in (60, 30):
        text_id = desk.order(number=NUMBER)
        desk.turn()
        desk.alter(CLAIMED_BEFORE, text_id, now - timedelta(hours=hours))
    texting = desk.texting
    numbers = [TextNumber(it, hash_number(texting.secret, it)) for it in (NUMBER, other, german, unknown)]
    capped, free, closed, nowhere = desk.do(lambda tx: _forecast(tx, desk.organization_id, numbers, texting), now=now)
    assert (capped.opens_at, capped.capped_until) == (now, now + timedelta(hours=12))
    assert (free.opens_at, free.capped_until) == (now, None)
    assert closed.opens_at is not None
    assert timedelta(hours=20) < closed.opens_at - now < timedelta(hours=52)
    assert nowhere.opens_at is None


async def _forecast(tx, organization_id, numbers, texting):
    found = await forecast_texts(tx, organization_id, numbers, texting=texting)
    return [found[number.number_hash] for number in numbers]
