"""Facts that consent publishes for the rooms above: one for every outcome that changed something, and no others."""

import msgspec
import pytest
from tests.consent.desk import DAY, MINUTE, NOW, NUMBER, consent, withdrawal

from regulars.consent.facts import SubscriptionsChanged
from regulars.consent.inbound import Reply, record_inbound_start, record_inbound_stop
from regulars.consent.subscription import subscription_out
from regulars.work.outbox import register_interest


@pytest.fixture
def listening(desk):
    desk.do(lambda tx: register_interest(tx, desk.organization_id, SubscriptionsChanged, needed_by="test"))


def published_changes(desk):
    rows = desk.do(
        lambda tx: tx.fetch(
            "SELECT payload::text FROM outbox WHERE organization_id = %s AND topic = 'subscriptions.changed' ORDER BY id",
            (desk.organization_id,),
        )
    )
    facts = [fact for (payload,) in rows for fact in msgspec.json.decode(payload, type=list[SubscriptionsChanged])]
    return [change for fact in facts for change in fact.changes]


def test_each_outcome_that_changes_something_is_published_with_the_subscription_right_after(desk, listening):
    (first,) = desk.opt_ins(consent())
    desk.opt_ins(consent())
    desk.opt_ins(consent(at=NOW - DAY))
    desk.opt_ins(consent(source="WEBSITE"))
    desk.opt_outs(withdrawal())
    desk.opt_outs(withdrawal(at=NOW - DAY))
    desk.opt_outs(withdrawal())
    desk.opt_ins(consent(at=NOW + MINUTE), now=NOW + 2 * MINUTE)
    changes = published_changes(desk)
    assert [change.outcome for change in changes] == ["created", "updated", "unsubscribed", "resubscribed"]
    assert [change.automation for change in changes] == ["eligible", "not_applicable", "not_applicable", "eligible"]
    assert [change.sequence for change in changes] == [1, 4, 5, 8]
    assert msgspec.json.decode(changes[0].shown) == msgspec.to_builtins(subscription_out(first.subscription))
    assert msgspec.json.decode(changes[2].shown)["status"] == "UNSUBSCRIBED"


def test_an_old_consent_is_published_as_stale(desk, listening):
    desk.opt_ins(consent(at=NOW - 8 * DAY))
    assert [(change.outcome, change.automation) for change in published_changes(desk)] == [("created", "stale_fact")]


def test_a_stop_and_a_start_by_text_are_published(desk, listening):
    desk.opt_ins(consent())
    reply = Reply(phone_number=NUMBER, text="STOP", message_id="m1")
    desk.do(lambda tx: record_inbound_stop(tx, desk.organization_id, [reply], secret=desk.secret), now=NOW + MINUTE)
    desk.do(lambda tx: record_inbound_start(tx, desk.organization_id, [reply], secret=desk.secret), now=NOW + DAY)
    assert [change.outcome for change in published_changes(desk)] == ["created", "unsubscribed", "resubscribed"]


def test_without_interest_nothing_is_recorded(desk):
    desk.opt_ins(consent())
    assert published_changes(desk) == []
