"""The home page names campaigns that need a person, and no others."""

from datetime import timedelta

import psycopg
import pytest
from tests.campaigns.desk import Desk
from tests.support.clock import store_two_hours_ahead

from regulars.campaigns import attention, manage
from regulars.campaigns.attention import CampaignInNeed, count_questions, find_in_need
from regulars.campaigns.run.start import StartQueue
from regulars.columns.client import Analysis
from regulars.kit.settings import Settings
from regulars.work.clock_steps import pull_forward

LATER = "UPDATE campaign_recipients SET fed_at = now() - interval '11 minutes' WHERE organization_id = %s"
IDLE = "UPDATE campaigns SET due_at = now() - interval '11 minutes' WHERE organization_id = %s"

A_MINUTE_LATER = """
    UPDATE campaigns SET tokens_at = now() - interval '1 min', due_at = now() - interval '1 s' WHERE organization_id = %s
"""


def in_need(desk: Desk, *, is_on_hold: bool = False) -> list[CampaignInNeed]:
    return desk.do(lambda tx: find_in_need(tx, desk.organization_id, is_on_hold=is_on_hold))


def questions(desk: Desk) -> int:
    return desk.do(lambda tx: count_questions(tx, desk.organization_id, limit=100))


def test_a_campaign_whose_queued_texts_no_worker_takes_has_sent_nothing_for_ten_minutes(desk):
    desk.crowd(3)
    campaign = desk.send()
    desk.feed()
    assert in_need(desk) == []
    desk.alter(LATER)
    [found] = in_need(desk)
    assert (found.row.id, found.unsent, found.stalled_since is not None) == (campaign, 3, True)
    # A hold of all texts is named by itself.
    assert in_need(desk, is_on_hold=True) == []
    # Texts that wait for the end of quiet hours are not late.
    desk.alter("UPDATE texts SET due_at = now() + interval '9 hours' WHERE organization_id = %s")
    assert in_need(desk) == []


def test_a_campaign_that_the_worker_does_not_continue_or_start_is_named(desk):
    desk.crowd(2)
    desk.send()
    desk.alter(IDLE)
    assert in_need(desk) == []
    desk.alter("UPDATE campaigns SET state = 'sending' WHERE organization_id = %s")
    assert len(in_need(desk)) == 1
    desk.work()
    assert in_need(desk) == []
    late = desk.draft()
    desk.act(manage.schedule, late, confirmed_recipients=2, is_now=True)
    assert in_need(desk) == []
    desk.alter("UPDATE campaigns SET starts_at = now() - interval '11 minutes' WHERE organization_id = %s")
    assert [found.row.id for found in in_need(desk)] == [late]


def test_an_old_campaign_is_named_whatever_was_made_since(desk, monkeypatch):
    monkeypatch.setattr(attention, "CAMPAIGNS_EXAMINED_MAX", 3)
    desk.crowd(2)
    paused = desk.send(recipients=2)
    desk.act(manage.pause, paused)
    for _ in range(3):
        desk.draft()
    assert [found.row.id for found in in_need(desk)] == [paused]


def test_a_paused_campaign_waits_for_a_person_and_a_question_is_counted(desk):
    desk.crowd(4)
    asked = desk.send(recipients=1)
    [found] = in_need(desk)
    assert (found.row.id, found.stalled_since, "were confirmed" in found.row.reason) == (asked, None, True)
    assert questions(desk) == 1
    desk.act(manage.cancel, asked)
    paused = desk.send(recipients=4)
    desk.feed()
    desk.act(manage.pause, paused)
    [found] = in_need(desk)
    assert (found.row.id, found.unsent) == (paused, 4)
    # The person who paused it knows.
    assert questions(desk) == 0
    assert found.row.updated_at > found.row.created_at - timedelta(seconds=1)


def test_a_start_that_waits_goes_on_after_the_clock_was_set_back_and_is_named_until_then(desk):
    desk.crowd(2)
    campaign = desk.draft()
    desk.customer("C1", tier="x")
    desk.act(manage.schedule, campaign, confirmed_recipients=2, is_now=True)
    desk.start()
    assert desk.load(campaign).row.reason == "The last changes of customers are still being counted."
    desk.alter(
        "UPDATE campaigns SET starts_at = now() + interval '2 hours', updated_at = now() + interval '2 hours',"
        " freeze_at = now() + interval '2 hours 1 s' WHERE organization_id = %s"
    )
    assert [found.row.id for found in in_need(desk)] == [campaign]
    queue = StartQueue(Analysis(Settings(), path=desk.path))
    desk.runner.run(pull_forward(desk.database, queue))
    assert in_need(desk) == []
    desk.drain()
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 2}


def test_a_campaign_that_a_user_starts_at_once_is_named_while_a_step_of_the_clock_delays_it(desk):
    desk.crowd(2)
    campaign = desk.draft()
    desk.act(manage.schedule, campaign, confirmed_recipients=2, is_now=True)
    with psycopg.connect(desk.database.url, autocommit=True) as connection:
        store_two_hours_ahead(connection, desk.organization_id, "campaigns")
    assert [found.row.id for found in in_need(desk)] == [campaign]
    # A campaign of next week is not late.
    desk.alter(
        "UPDATE campaigns SET starts_at = now() + interval '7 days', freeze_at = now() + interval '7 days'"
        " WHERE organization_id = %s"
    )
    assert in_need(desk) == []


@pytest.mark.parametrize("texts_per_hour", [None, 3600])
def test_a_campaign_goes_on_after_the_clock_was_set_back_and_is_named_until_then(desk, texts_per_hour):
    """All stored times are two hours ahead, also those of recipients, texts and tokens."""
    desk.crowd(3)
    desk.send(**({} if texts_per_hour is None else {"texts_per_hour": texts_per_hour}))
    desk.feed()
    with psycopg.connect(desk.database.url, autocommit=True) as connection:
        tables = ("campaigns", "campaign_recipients", "texts", "sender_rates")
        store_two_hours_ahead(connection, desk.organization_id, *tables)
    assert len(in_need(desk)) == 1
    for _ in range(3):
        for queue in (desk.campaigns, desk.texts_queue):
            desk.runner.run(pull_forward(desk.database, queue))
        assert in_need(desk) == []
        desk.alter(A_MINUTE_LATER)
        desk.feed()
        desk.turn(desk.texts_queue)
        desk.drain()
    assert len(desk.gateway.sent) == 3
