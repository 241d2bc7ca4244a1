"""The gate and the queue: what leaves, what waits, what is skipped, and that nothing leaves twice."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.support.desk import NUMBER
from tests.support.gateway import OPEN, only_on
from tests.texts.desk import MAKE_DUE

from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts.errors import MessagingError
from regulars.texts.providers.base import Accepted, NotAuthorized, NotReached, Refused, Unclear
from regulars.texts.request import resend
from regulars.texts.settings.model import Cap, OptOutNotice, SendHoursRule, SmsSettings
from regulars.texts.stops import hold, release
from regulars.texts.template import MissingValue

ZONES = {
    "Pacific/Kiritimati": "UPDATE organizations SET time_zone = 'Pacific/Kiritimati' WHERE id = %s",
    "Pacific/Pago_Pago": "UPDATE organizations SET time_zone = 'Pacific/Pago_Pago' WHERE id = %s",
}


def test_a_subscribed_number_gets_its_text_with_the_brand_and_the_way_to_stop(desk):
    desk.subscribe()
    desk.order("New scarves are here")
    desk.turn()
    assert desk.texts() == [("sent", None)]
    assert [text.body for text in desk.gateway.sent] == ["Shop: New scarves are here Reply STOP to opt out"]


def test_without_consent_nothing_leaves(desk):
    desk.order()
    desk.subscribe("+33612345679")
    desk.turn()
    assert desk.texts() == [("skipped", "no_consent")]
    assert desk.gateway.sent == []


def test_a_withdrawal_after_the_order_is_seen_by_the_gate(desk):
    desk.subscribe()
    desk.order()
    desk.opt_out()
    desk.turn()
    assert desk.texts() == [("skipped", "no_consent")]


def test_a_number_that_is_linked_to_another_customer_by_now_is_not_texted(desk):
    desk.subscribe()
    desk.order(profile_id=new_uuid())
    desk.turn()
    assert desk.texts() == [("skipped", "not_linked")]


def test_one_step_of_one_origin_sends_once_however_often_it_asks(desk):
    desk.subscribe()
    origin = new_uuid()
    for _ in range(3):
        desk.order(origin_kind=OriginKind.JOURNEY, origin_id=origin, step="7")
    desk.turn()
    assert len(desk.gateway.sent) == 1
    assert desk.texts() == [("sent", None)]


def test_the_cap_counts_what_was_sent_and_what_may_have_been(desk):
    desk.settings(SmsSettings(rules=OPEN, caps=(Cap(2, 24),)))
    desk.subscribe()
    desk.gateway.answer = Unclear("no answer")
    desk.order()
    desk.turn()
    desk.gateway.answer = None
    # Two in one batch: the first takes the last place below the cap.
    desk.order()
    desk.order()
    desk.turn()
    assert desk.texts() == [("unknown", "no answer"), ("sent", None), ("skipped", "cap")]


def test_outside_the_hours_a_text_waits_and_is_skipped_after_96_hours(desk):
    desk.settings(SmsSettings(rules={"FR": SendHoursRule(days=(None,) * 7)}))
    desk.subscribe()
    desk.order()
    desk.turn()
    assert desk.texts() == [("skipped", "hours")]


def test_a_text_that_waits_for_the_morning_is_not_looked_at_before(desk):
    now = desk.now()
    weekday = (now + timedelta(days=2)).weekday()
    desk.settings(SmsSettings(rules={"FR": only_on(weekday)}))
    desk.subscribe()
    desk.order()
    desk.turn()
    [(state, due_at)] = desk.sql("SELECT state, due_at FROM texts WHERE organization_id = %s")
    assert state == "queued"
    assert timedelta(hours=20) < due_at - now < timedelta(hours=52)


@pytest.mark.parametrize("is_set_later", [False, True])
def test_no_text_goes_to_a_country_whose_notice_was_not_set_when_it_was_written(desk, is_set_later):
    desk.alter("UPDATE sms_settings SET provider = 'twilio' WHERE organization_id = %s")
    desk.subscribe()
    desk.order()
    if is_set_later:
        desk.settings(SmsSettings(rules=OPEN, notices={"FR": OptOutNotice("STOP 36111", "36111")}))
    desk.turn()
    assert desk.texts() == [("skipped", "country_not_set")]


@pytest.mark.parametrize(
    ("words", "reason"),
    [(MissingValue("profile.first_name"), "missing_value: profile.first_name"), ("x" * 1700, "too_long")],
)
def test_what_cannot_be_written_is_stored_as_skipped_with_its_reason(desk, words, reason):
    desk.subscribe()
    desk.order(words)
    desk.turn()
    assert desk.texts() == [("skipped", reason)]


def test_a_sender_that_dies_leaves_unknown_and_never_sends_again(desk):
    desk.subscribe()
    desk.order()

    async def die(text):
        raise RuntimeError("killed")

    desk.gateway.answer = die
    desk.turn()
    assert desk.texts() == [("sending", None)]
    desk.alter("UPDATE texts SET due_at = now() - interval '1 second' WHERE organization_id = %s")
    desk.gateway.answer = None
    desk.turn()
    assert desk.texts() == [("unknown", "The worker ended before the outcome was known.")]
    assert len(desk.gateway.sent) == 1


def test_a_stop_that_only_the_provider_received_withdraws_here_too_and_is_not_answered(desk):
    desk.subscribe()
    desk.gateway.answer = Refused("21610", "unsubscribed", is_stop=True)
    desk.order()
    desk.turn()
    assert [state for state, _ in desk.texts()] == ["failed"]
    assert not desk.is_subscribed()


def test_nothing_leaves_while_texts_are_held_and_what_is_still_fresh_leaves_after(desk):
    desk.subscribe()
    texting = desk.texting
    desk.do(lambda tx: hold(tx, desk.organization_id, texting, reason="A test."))
    desk.order()
    desk.turn()
    assert desk.texts() == [("queued", None)]
    held = desk.texting
    assert held.is_on_hold
    desk.do(lambda tx: release(tx, desk.organization_id, held))
    desk.turn()
    assert desk.texts() == [("sent", None)]


def test_a_claim_that_is_not_dialled_in_time_goes_back_and_is_judged_again(desk, monkeypatch):
    desk.subscribe()
    desk.order()
    monkeypatch.setattr("regulars.texts.send.DIAL_WITHIN_S", -1.0)
    desk.runner.run(desk.texts_queue.run_pass(desk.database, desk.organization_id))
    desk.runner.run(desk.texts_queue.finish())
    assert desk.texts() == [("queued", None)]
    assert desk.gateway.sent == []
    monkeypatch.undo()
    desk.opt_out()
    desk.alter(MAKE_DUE)
    desk.turn()
    assert desk.texts(NUMBER) == [("skipped", "no_consent")]


@pytest.mark.parametrize("zone", ZONES)
def test_totals_are_of_the_organizations_own_day(desk, zone):
    """One of the two is on another day than UTC at any hour."""
    desk.alter(ZONES[zone])
    desk.subscribe()
    before = datetime.now(ZoneInfo(zone)).date()
    desk.order()
    desk.turn()
    days = {row[0] for row in desk.sql("SELECT day FROM text_totals WHERE organization_id = %s")}
    assert len(days) == 1
    assert days <= {before, datetime.now(ZoneInfo(zone)).date()}


def test_an_answer_to_a_stop_is_not_sent_again(desk):
    desk.subscribe()
    desk.gateway.answer = Unclear("lost")
    desk.reply("STOP")
    desk.turn()
    [(text_id,)] = desk.sql("SELECT id FROM texts WHERE organization_id = %s")
    with pytest.raises(MessagingError, match="within five minutes"):
        desk.do(lambda tx: resend(tx, desk.organization_id, text_id))


def test_a_brand_inside_another_word_is_no_name(desk):
    desk.settings(SmsSettings(brand="Art", rules=OPEN))
    desk.subscribe()
    desk.order("Our Articles are here")
    desk.turn()
    assert desk.gateway.sent[0].body.startswith("Art: Our Articles")


def test_an_account_that_the_provider_refuses_puts_texts_on_hold_and_fails_none(desk):
    for number in (NUMBER, "+33612345679"):
        desk.subscribe(number)
        desk.order(number=number)
    desk.gateway.answer = NotAuthorized("Twilio refused the account: 20003 Authenticate.")
    desk.turn()
    held = desk.texting
    assert (held.is_on_hold, held.held_reason) == (True, "Twilio refused the account: 20003 Authenticate.")
    assert desk.texts() == [("queued", None)] * 2
    tried = len(desk.gateway.sent)
    desk.turn()
    assert len(desk.gateway.sent) == tried
    desk.gateway.answer = None
    desk.do(lambda tx: release(tx, desk.organization_id, held))
    desk.turn()
    assert desk.texts() == [("sent", None)] * 2


def test_a_refusal_of_credentials_that_were_changed_since_holds_nothing(desk):
    desk.subscribe()
    desk.order()

    async def refuse(_text):
        async with desk.database.transaction() as tx:
            await tx.execute(
                "UPDATE sms_settings SET credentials = 'other' WHERE organization_id = %s", (desk.organization_id,)
            )
        desk.gateway.answer = None
        return NotAuthorized("Twilio refused the account: 20003 Authenticate.")

    desk.gateway.answer = refuse
    desk.turn()
    desk.turn()
    assert not desk.texting.is_on_hold
    assert desk.texts() == [("sent", None)]


def test_a_provider_whose_queue_is_full_is_asked_until_it_takes_the_text(desk):
    desk.subscribe()
    desk.order()
    desk.gateway.answer = NotReached("The provider's queue is full.", is_busy=True)
    for _ in range(8):
        desk.alter("UPDATE texts SET due_at = now() - interval '1 second' WHERE organization_id = %s")
        desk.turn()
    assert desk.texts() == [("queued", None)]
    desk.gateway.answer = Accepted("SM1")
    desk.alter("UPDATE texts SET due_at = now() - interval '1 second' WHERE organization_id = %s")
    desk.turn()
    assert desk.texts() == [("sent", None)]
