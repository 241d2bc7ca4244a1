"""Texts of a campaign: their last moment, and the facts by which its totals move."""

from datetime import timedelta

import msgspec
import pytest
from tests.messaging.desk import OPEN

from regulars.kit.ids import new_uuid
from regulars.messaging.errors import NotUnknown
from regulars.messaging.facts import MessagesChanged
from regulars.messaging.model import OriginKind, State
from regulars.messaging.providers.base import Accepted, Unclear
from regulars.messaging.receipts import apply_receipt
from regulars.messaging.request import resend
from regulars.messaging.settings.model import SmsSettings
from regulars.messaging.template import MissingValue
from regulars.work.outbox import register_interest

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
    return desk.order(
        origin_kind=OriginKind.CAMPAIGN, origin_id=campaign_id or new_uuid(), step=str(new_uuid()), **more
    )


def test_nothing_leaves_after_the_last_moment_of_a_text(desk):
    desk.subscribe()
    now = desk.do(_now)
    order_from_campaign(desk, expires_at=now - timedelta(seconds=1))
    desk.turn()
    assert desk.texts() == [("skipped", "expired")]
    order_from_campaign(desk, expires_at=now + timedelta(hours=1))
    desk.turn()
    assert desk.gateway.sent[0].until <= now + timedelta(hours=1)


async def _now(tx):
    return tx.now


def test_a_text_is_not_sent_again_after_its_campaigns_last_moment(desk):
    desk.settings(SmsSettings(rules=OPEN, caps=()))
    desk.subscribe()
    desk.gateway.answer = lose
    last_moment = desk.do(_now) + timedelta(hours=1)
    text_id = order_from_campaign(desk, expires_at=last_moment)
    desk.turn()
    desk.do(lambda tx: resend(tx, desk.organization_id, text_id))
    assert desk.sql("SELECT expires_at FROM texts WHERE organization_id = %s") == [(last_moment,)]
    desk.turn()
    with pytest.raises(NotUnknown, match="last moment"):
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
            State.DELIVERED,
            provider_id=None,
            attempt="2",
            code=None,
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
        ("sent", "delivered", None),
    ]
    counted = desk.sql("SELECT state, texts FROM text_totals WHERE organization_id = %s ORDER BY state")
    assert counted == [("delivered", 1), ("sent", 1), ("skipped", 2), ("unknown", 1)]
