"""Pause, resume and cancel: nothing more is sent, and no customer is texted twice or forgotten."""

import pytest
from tests.campaigns.desk import definition

from regulars.campaigns import manage
from regulars.texts.providers.base import NotReached
from regulars.texts.stops import hold, release


def test_pausing_takes_queued_texts_back_and_resuming_sends_them_once(desk):
    desk.crowd(4)
    campaign = desk.send()
    desk.feed()
    assert desk.outcomes(campaign) == {"queued": 4}
    desk.act(manage.pause, campaign)
    assert desk.outcomes(campaign) == {"waiting": 4}
    assert desk.texts(campaign) == []
    desk.work()
    assert desk.gateway.sent == []
    desk.act(manage.resume, campaign)
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 4}
    assert len(desk.gateway.sent) == 4


def test_a_text_that_its_sender_returns_while_the_campaign_is_paused_is_fed_again(desk):
    desk.crowd(1)

    async def pause_and_fail(text):
        desk.gateway.answer = None
        async with desk.database.transaction() as tx:
            await manage.pause(tx, desk.organization_id, campaign, by="ann@shop.example")
        return NotReached("The provider did not answer.")

    desk.gateway.answer = pause_and_fail
    campaign = desk.send()
    desk.work()
    assert desk.load(campaign).row.state == "paused"
    assert desk.outcomes(campaign) == {"waiting": 1}
    desk.act(manage.resume, campaign)
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 1}


def test_cancelling_skips_the_queued_and_the_waiting(desk):
    desk.crowd(4)
    campaign = desk.send(texts_per_hour=120)
    desk.feed()
    desk.alter(
        "UPDATE campaigns SET due_at = now() - interval '1 s', tokens_at = now() - interval '30 s' WHERE organization_id = %s"
    )
    desk.feed()
    desk.act(manage.cancel, campaign)
    desk.drain()
    desk.work()
    assert desk.load(campaign).row.state == "cancelled"
    assert desk.outcomes(campaign) == {"skipped": 4}
    assert desk.gateway.sent == []
    reasons = desk.sql(
        "SELECT reason, sum(recipients) FROM campaign_totals WHERE organization_id = %s AND campaign_id = %s"
        " AND recipients > 0 GROUP BY reason",
        campaign,
    )
    assert reasons == [("cancelled", 4)]


def test_a_campaign_that_the_worker_pauses_gets_its_queued_texts_back(desk):
    desk.crowd(3)
    campaign = desk.send()
    desk.feed()
    desk.alter(
        "UPDATE campaigns SET definition = '{}', attempts = 9, due_at = now() - interval '1 s' WHERE organization_id = %s"
    )
    desk.feed()
    row = desk.load_row(campaign)
    assert (row.state, row.reason) == ("paused", "A step failed; the log of the worker says why.")
    desk.turn(desk.texts_queue)
    desk.drain()
    assert desk.outcomes(campaign) == {"waiting": 3}
    assert desk.gateway.sent == []


def test_after_a_restore_every_active_campaign_waits_for_a_person(desk):
    desk.crowd(2)
    sending = desk.send()
    desk.feed()
    scheduled = desk.draft(schedule={"start": "at", "at": "2099-01-01T10:00:00Z"})
    desk.act(manage.schedule, scheduled, confirmed_recipients=2)
    draft = desk.draft()
    assert desk.do(lambda tx: manage.pause_restored(tx, desk.organization_id)) == 2
    states = [desk.load(it).row.state for it in (sending, scheduled, draft)]
    assert states == ["paused", "paused", "draft"]
    assert "twice" in desk.load(sending).row.reason
    desk.work()
    assert desk.gateway.sent == []
    desk.act(manage.resume, sending)
    desk.work()
    assert desk.outcomes(sending) == {"sent": 2}


def hold_texts(desk):
    texting = desk.texting
    desk.do(lambda tx: hold(tx, desk.organization_id, texting, reason="A test."))


def test_after_a_hold_and_a_pause_all_recipients_get_the_changed_words_once(desk):
    desk.crowd(4)
    campaign = desk.send(variants=[{"text": "Coats for 9 EUR"}])
    desk.feed()
    hold_texts(desk)
    desk.turn()
    # The texts wait for the end of the hold, and go back all the same.
    desk.act(manage.pause, campaign)
    assert (desk.outcomes(campaign), desk.texts(campaign)) == ({"waiting": 4}, [])
    changed = definition(desk.reachable, variants=[{"text": "Coats for 90 EUR"}])
    desk.do(lambda tx: manage.update_campaign(tx, desk.organization_id, campaign, changed))
    held = desk.texting
    desk.do(lambda tx: release(tx, desk.organization_id, held))
    desk.act(manage.schedule, campaign, confirmed_recipients=4, is_now=True)
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 4}
    assert ["90 EUR" in text.body for text in desk.gateway.sent] == [True] * 4


@pytest.mark.parametrize("stopped_by", ["pause", "hold"])
def test_a_stop_beyond_the_last_moment_leaves_an_outcome_for_each_recipient(desk, stopped_by):
    desk.crowd(4)
    campaign = desk.send()
    desk.feed()
    if stopped_by == "hold":
        hold_texts(desk)
    else:
        desk.act(manage.pause, campaign)
    desk.turn()
    desk.alter("UPDATE texts SET due_at = created_at, expires_at = created_at WHERE organization_id = %s")
    desk.alter("UPDATE campaigns SET due_at = now() - interval '1 s', not_after = now() WHERE organization_id = %s")
    desk.feed()
    desk.turn()
    desk.drain()
    assert desk.outcomes(campaign) == {"expired" if stopped_by == "pause" else "skipped": 4}
    assert desk.gateway.sent == []
