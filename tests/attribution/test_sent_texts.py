"""What texts cost: they are counted when they leave, by what sent them, day and country."""

from datetime import date, timedelta

import pytest
from tests.attribution.desk import Desk

from regulars.attribution.sent_texts import count_sent_texts, parts_by_country, read_sent_by_month, read_sent_of
from regulars.links.origin_kind import OriginKind
from regulars.texts.facts import MessagesChanged


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.customer("ada")
    return desk


def leave(desk: Desk, text, state="sent", previous="sending", reason=None):
    fact = MessagesChanged("text", text, state=state, previous_state=previous, reason=reason)
    desk.do(lambda tx: count_sent_texts(tx, desk.organization_id, [fact]))


def read(desk: Desk):
    found = desk.do(
        lambda tx: read_sent_by_month(tx, desk.organization_id, first=date(2020, 1, 1), last=date(2100, 1, 1))
    )
    return [(it.origin.kind, it.country, it.texts, it.parts) for it in found]


def test_a_text_counts_once_when_it_leaves_whatever_its_receipt_says(desk):
    desk.text("ada", ago=timedelta(hours=1))
    text = desk.last_text()
    leave(desk, text)
    leave(desk, text, "delivered", "sent")
    leave(desk, text, "failed", "delivered")
    assert read(desk) == [(OriginKind.PERSON, "", 1, 1)]


def test_only_what_a_provider_took_costs_something(desk):
    desk.text("ada", ago=timedelta(hours=1))
    text = desk.last_text()
    leave(desk, text, "skipped", "queued", "cap")
    leave(desk, text, "failed", "sending", "refused 30003: Unreachable")
    assert read(desk) == []
    leave(desk, text, "failed", "sending", "undelivered 30003")
    assert read(desk) == [(OriginKind.PERSON, "", 1, 1)]


def test_a_campaign_has_its_texts_and_an_answer_to_stop_is_of_no_origin(desk):
    campaign = desk.organization_id
    desk.text("ada", ago=timedelta(hours=1), campaign=campaign)
    leave(desk, desk.last_text())
    desk.text("ada", ago=timedelta(hours=1))
    desk.alter("UPDATE texts SET origin_kind = 'stop' WHERE organization_id = %s AND id = %s", desk.last_text())
    leave(desk, desk.last_text())
    found = desk.do(lambda tx: read_sent_of(tx, desk.organization_id, campaign))
    assert parts_by_country(found) == {"": 1}
    assert len(read(desk)) == 1
