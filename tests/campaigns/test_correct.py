"""A campaign that was paused before its first text was dialled can be corrected: only the new wording is sent."""

import asyncio

import pytest
from tests.campaigns.desk import definition
from tests.support.waiting import until_locked
from tests.texts.desk import MAKE_DUE

from regulars.campaigns import manage
from regulars.campaigns.approval import approve
from regulars.campaigns.run import discard
from regulars.campaigns.run.queries import take_due
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.kit.refusals import NotPossible
from regulars.texts.providers.base import NotReached, Refused, Unclear
from regulars.texts.stops import resume

OLD, NEW = "Coats for 9 EUR", "Coats for 90 EUR"


def correct(desk, campaign_id):
    given = definition(desk.reachable, variants=[{"text": NEW}])

    async def change(tx: Tx) -> manage.Campaign:
        return await manage.update_campaign(tx, desk.organization_id, campaign_id, given, created_by="bob@shop.example")

    return desk.do(change)


def schedule(desk, campaign_id):
    desk.act(manage.schedule, campaign_id, confirmed_recipients=len(desk.people), is_now=True)


def left(desk):
    tables = ("campaign_audiences", "campaign_recipients", "campaign_totals", "texts")
    return [table for table in tables if desk.sql(f"SELECT 1 FROM {table} WHERE organization_id = %s")]  # noqa: S608  # four fixed names


@pytest.mark.parametrize("stage", ["scheduled", "frozen", "fed"])
def test_a_correction_before_the_first_text_sends_only_the_new_wording(desk, stage):
    desk.crowd(3)
    campaign = desk.draft(variants=[{"text": OLD}])
    desk.act(approve, campaign, by="eve@shop.example", recipients=3)
    schedule(desk, campaign)
    if stage != "scheduled":
        desk.drain()
        desk.start()
    if stage == "fed":
        desk.feed()
        assert len(desk.texts(campaign)) == 3
    desk.act(manage.pause, campaign)
    assert desk.load(campaign).is_editable
    row = correct(desk, campaign).row
    assert (row.state, row.frozen_at, row.confirmed_recipients, row.confirmed_by) == ("draft", None, None, None)
    assert row.approved_revision != row.revision
    assert left(desk) == []
    schedule(desk, campaign)
    desk.drain()
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 3}
    assert [(OLD in text.body, NEW in text.body) for text in desk.gateway.sent] == [(False, True)] * 3


def test_a_large_audience_is_removed_in_batches_before_it_is_scheduled_again(desk, monkeypatch):
    monkeypatch.setattr(discard, "_RECIPIENTS_MAX", 2)
    desk.crowd(5)
    campaign = desk.send(variants=[{"text": OLD}])
    desk.feed()
    desk.act(manage.pause, campaign)
    correct(desk, campaign)
    assert "campaign_recipients" in left(desk)
    with pytest.raises(NotPossible, match="still being removed"):
        schedule(desk, campaign)
    # It may be changed meanwhile.
    correct(desk, campaign)
    desk.feed()
    assert left(desk) == []
    assert desk.load(campaign).row.frozen_at is None
    schedule(desk, campaign)
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 5}
    assert all(NEW in text.body for text in desk.gateway.sent)


def pause_automatically(desk):
    """As after a step that failed too often: the queued texts stay in the queue."""
    desk.alter("UPDATE campaigns SET attempts = 9, due_at = now() - interval '1 s' WHERE organization_id = %s")
    [row] = desk.do(lambda tx: take_due(tx, desk.organization_id, limit=1))
    desk.do(lambda tx: desk.campaigns.postpone(tx, desk.organization_id, row, attempts=10, due_at=None))


def test_no_old_text_leaves_after_a_correction_of_a_campaign_that_the_worker_paused(desk, monkeypatch):
    monkeypatch.setattr(discard, "_RECIPIENTS_MAX", 2)
    desk.crowd(5)
    campaign = desk.send(variants=[{"text": OLD}])
    desk.feed()
    pause_automatically(desk)
    assert len(desk.texts(campaign)) == 5
    correct(desk, campaign)
    desk.turn(desk.texts_queue)
    assert desk.gateway.sent == []
    desk.feed()
    schedule(desk, campaign)
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 5}
    assert [(OLD in text.body, NEW in text.body) for text in desk.gateway.sent] == [(False, True)] * 5


def test_a_text_that_a_worker_claims_during_a_correction_is_not_deleted(desk):
    desk.crowd(2)
    campaign = desk.send(variants=[{"text": OLD}])
    desk.feed()
    pause_automatically(desk)
    # The worker began its claim before the pause.
    desk.do(lambda tx: resume(tx, desk.organization_id, campaign))

    async def press() -> None:
        given = definition(desk.reachable, variants=[{"text": NEW}])
        async with desk.database.transaction() as tx:
            await manage.update_campaign(tx, desk.organization_id, campaign, given, created_by="bob@shop.example")

    async def run() -> None:
        async with desk.database.transaction() as tx:
            claimed = await desk.texts_queue.claim(
                tx, desk.organization_id, limit=1, lowest=2, owner=new_uuid(), until=tx.now
            )
            assert len(claimed) == 1
            pressing = asyncio.create_task(press())
            await until_locked(desk.database)
        with pytest.raises(NotPossible, match="cannot be changed"):
            await pressing

    desk.runner.run(run())
    assert sorted(state for state, _ in desk.texts(campaign)) == ["queued", "sending"]


def test_texts_that_did_not_reach_the_provider_do_not_prevent_a_correction(desk):
    desk.crowd(2)
    campaign = desk.send(variants=[{"text": OLD}], texts_per_hour=1)
    desk.feed()

    async def refuse(_text):
        return NotReached("refused")

    desk.gateway.answer = refuse
    for _ in range(5):
        desk.turn(desk.texts_queue)
        desk.alter(MAKE_DUE)
    desk.drain()
    assert ("failed", "not_reached") in desk.texts(campaign)
    desk.act(manage.pause, campaign)
    desk.gateway.answer = None
    desk.gateway.sent.clear()
    correct(desk, campaign)
    assert left(desk) == []
    schedule(desk, campaign)
    desk.drain()
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 2}
    assert all(NEW in text.body for text in desk.gateway.sent)


@pytest.mark.parametrize("outcome", [None, Unclear("lost"), Refused("30003", "Unreachable")])
def test_after_the_first_text_was_dialled_nothing_can_be_changed(desk, outcome):
    desk.crowd(2)
    campaign = desk.send(variants=[{"text": OLD}], texts_per_hour=1)
    desk.feed()

    async def end(_text):
        return outcome

    desk.gateway.answer = None if outcome is None else end
    desk.turn(desk.texts_queue)
    desk.drain()
    desk.act(manage.pause, campaign)
    assert len(desk.gateway.sent) == 1
    assert not desk.load(campaign).is_editable
    with pytest.raises(NotPossible, match="cannot be changed"):
        correct(desk, campaign)
    desk.act(manage.resume, campaign)
    assert desk.load(campaign).row.state == "sending"
