"""What comes in: keywords take effect at once and once, everything else waits for a person."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.desk import NUMBER
from tests.support.gateway import OPEN

from regulars.consent.chain import hash_number
from regulars.inbox.decide import OverdueReplies, decide
from regulars.inbox.find import list_replies, read_conversation
from regulars.inbox.receive import decision_deadline
from regulars.texts.errors import MessagingError
from regulars.texts.settings.model import Cap, SmsSettings


def replies(desk, **filters):
    return desk.do(lambda tx: list_replies(tx, desk.organization_id, limit=100, **filters))


def test_stop_withdraws_at_once_and_is_confirmed_once_in_the_language_of_the_number(desk):
    desk.subscribe()
    desk.reply("STOP")
    desk.reply("stop !")
    desk.turn()
    assert not desk.is_subscribed()
    assert [text.body for text in desk.gateway.sent] == ["Shop: Vous ne recevrez plus de SMS de notre part."]
    assert [row.decided for row in replies(desk)] == ["withdrew", "withdrew"]


def test_a_message_that_the_provider_brings_twice_counts_once(desk):
    desk.subscribe()
    assert desk.reply("STOP", provider_id="SM1").is_new
    desk.subscribe()
    assert not desk.reply("STOP", provider_id="SM1").is_new
    assert desk.is_subscribed()


def test_a_stop_that_the_provider_confirmed_gets_no_second_answer(desk):
    desk.subscribe()
    desk.reply("STOP", provider_responded=True)
    desk.turn()
    assert not desk.is_subscribed()
    assert desk.gateway.sent == []


def test_a_confirmation_leaves_within_five_minutes_or_never(desk):
    desk.subscribe()
    desk.reply("STOP")
    desk.alter("UPDATE texts SET expires_at = now() - interval '1 second' WHERE organization_id = %s")
    desk.turn()
    assert desk.texts() == [("skipped", "expired")]


def test_start_revives_only_who_stopped_by_text(desk):
    desk.reply("START")
    assert not desk.is_subscribed()
    desk.subscribe()
    desk.opt_out()
    desk.reply("START")
    assert not desk.is_subscribed()
    desk.subscribe()
    desk.reply("STOP")
    desk.reply("start")
    assert desk.is_subscribed()
    assert [row.decided for row in replies(desk)] == ["revived", "withdrew", "ignored", "ignored"]


def test_start_does_not_revive_who_withdrew_again_in_another_way_after_a_stop(desk):
    desk.subscribe()
    desk.reply("STOP")
    desk.opt_out()
    desk.reply("START")
    assert not desk.is_subscribed()
    desk.reply("STOP")
    desk.reply("START")
    assert desk.is_subscribed()


def test_help_is_answered_at_any_hour_once_a_day_also_after_a_withdrawal(desk):
    desk.settings(SmsSettings(brand="Shop", help_contact="shop.example/help", caps=(Cap(0, 24),)))
    desk.reply("HELP")
    desk.reply("help")
    desk.turn()
    assert [text.body for text in desk.gateway.sent] == [
        "Shop: Pour ne plus recevoir de SMS, répondez STOP. Contact : shop.example/help"
    ]


def test_a_possible_stop_suppresses_the_number_until_a_person_decides(desk):
    desk.settings(SmsSettings(rules=OPEN, caps=()))
    desk.subscribe()
    reply = desk.reply("arrêtez de m'écrire")
    desk.order()
    desk.turn()
    texting = desk.texting
    desk.do(lambda tx: decide(tx, desk.organization_id, reply.id, is_stop=False, decided_by="Ada", texting=texting))
    desk.order()
    desk.turn()
    assert desk.texts() == [("skipped", "suppressed"), ("sent", None)]
    assert desk.is_subscribed()
    with pytest.raises(MessagingError, match="was decided before"):
        desk.do(lambda tx: decide(tx, desk.organization_id, reply.id, is_stop=True, decided_by="Ada", texting=texting))


def test_two_possible_stops_are_both_to_be_decided(desk):
    desk.subscribe()
    first = desk.reply("remove me please")
    desk.reply("leave me alone")
    texting = desk.texting
    desk.do(lambda tx: decide(tx, desk.organization_id, first.id, is_stop=False, decided_by="Ada", texting=texting))
    desk.order()
    desk.turn()
    assert desk.texts() == [("skipped", "suppressed")]


def test_a_decision_to_stop_withdraws_with_the_words_as_the_origin(desk):
    desk.subscribe()
    reply = desk.reply("remove me please")
    texting = desk.texting
    desk.do(lambda tx: decide(tx, desk.organization_id, reply.id, is_stop=True, decided_by="Ada", texting=texting))
    assert not desk.is_subscribed()
    [(message,)] = desk.sql(
        "SELECT payload ->> 'message' FROM consent_payloads WHERE organization_id = %s"
        " AND payload ->> 'kind' = 'OPT_OUT'"
    )
    assert message == "remove me please"
    assert replies(desk, undecided_only=True) == []


def test_a_possible_stop_that_is_not_decided_in_time_is_a_stop(desk):
    desk.subscribe()
    desk.reply("remove me please")
    desk.reply("A quelle heure ouvrez-vous ?")
    queue = OverdueReplies()
    desk.runner.run(queue.run_pass(desk.database, desk.organization_id))
    assert desk.is_subscribed()
    desk.alter(
        "UPDATE replies SET due_at = now() - interval '1 second' WHERE organization_id = %s AND due_at IS NOT NULL"
    )
    desk.runner.run(queue.run_pass(desk.database, desk.organization_id))
    assert not desk.is_subscribed()
    assert {row.decided_by for row in replies(desk)} == {"nobody in time"}


def test_five_business_days_leave_out_weekends_and_holidays_of_the_country():
    friday = datetime(2026, 11, 13, 10, tzinfo=UTC)
    assert decision_deadline("+12125551234", friday) == friday + timedelta(days=7)
    # Christmas, a weekend, New Year's Day, and another weekend.
    before_christmas = datetime(2026, 12, 24, 10, tzinfo=UTC)
    assert decision_deadline("+12125551234", before_christmas) == datetime(2027, 1, 4, 10, tzinfo=UTC)


def test_a_conversation_shows_both_sides_in_order(desk):
    desk.subscribe()
    desk.order("Hello")
    desk.turn()
    desk.reply("merci")
    number_hash = hash_number(desk.texting.secret, NUMBER)
    lines = desk.do(lambda tx: read_conversation(tx, desk.organization_id, number_hash, limit=10))
    assert [line.text.body if line.text else line.reply.body for line in lines] == [
        "Shop: Hello Reply STOP to opt out",
        "merci",
    ]


def test_a_late_stop_withdraws_but_is_not_answered_and_a_late_start_revives_no_consent(desk):
    desk.subscribe()
    desk.reply("STOP", is_late=True)
    desk.reply("START", is_late=True)
    desk.turn()
    assert not desk.is_subscribed()
    assert desk.gateway.sent == []
