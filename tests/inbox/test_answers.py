"""A user's answers to a customer's message: outside the frequency caps for a time, and answered once the provider took
one."""

import pytest
from tests.support.desk import NUMBER
from tests.support.gateway import OPEN

from regulars.inbox.decide import answer, decide
from regulars.inbox.find import list_replies
from regulars.kit.ids import ById, new_uuid
from regulars.privacy.erase import erase_profiles
from regulars.texts.errors import MessagingError
from regulars.texts.model import TextState
from regulars.texts.providers.base import Refused, Unclear
from regulars.texts.receipts import apply_receipt
from regulars.texts.request import send_past_cap
from regulars.texts.settings.model import Cap, OpenHours, SendHoursRule, SmsSettings
from regulars.texts.stops import hold, release
from regulars.texts.text_rows import find_authors

SENT = ("sent", None)
CAPPED = ("skipped", "cap")
ADA, BOB = new_uuid(), new_uuid()
CLOSED = SendHoursRule(days=(None,) * 7)
QUESTION = "A quelle heure ouvrez-vous ?"


@pytest.fixture
def capped(desk):
    """A desk whose customer has had as many texts as the cap allows."""
    desk.settings(SmsSettings(brand="Shop", rules=OPEN, caps=(Cap(1, 24),)))
    desk.subscribe()
    desk.order()
    desk.turn()
    assert desk.texts() == [SENT]
    return desk


def say(desk, reply_id, *, once=None, author_id=None):
    texting = desk.texting
    placed = desk.do(
        lambda tx: answer(
            tx,
            desk.organization_id,
            reply_id,
            once=once or new_uuid(),
            text="A 9 h.",
            author_id=author_id,
            texting=texting,
        )
    )
    return placed.id


def decision(desk):
    [row] = desk.do(lambda tx: list_replies(tx, desk.organization_id, limit=10))
    return row.decided, row.decided_by


def send_anyway(desk, text_id):
    desk.do(lambda tx: send_past_cap(tx, desk.organization_id, text_id))


def test_an_answer_is_sent_past_a_full_cap_and_decides_the_reply_when_it_was_sent(capped):
    reply = capped.reply(QUESTION)
    say(capped, reply.id)
    assert decision(capped) == (None, None)
    capped.turn()
    assert capped.texts() == [SENT, SENT]
    assert decision(capped) == ("answered", None)
    with pytest.raises(MessagingError, match="no reply with this id"):
        say(capped, new_uuid())


def test_answers_do_not_fill_the_cap_of_other_texts(desk):
    desk.settings(SmsSettings(brand="Shop", rules=OPEN, caps=(Cap(1, 24),)))
    desk.subscribe()
    say(desk, desk.reply(QUESTION).id)
    desk.turn()
    desk.order()
    desk.turn()
    assert desk.texts() == [SENT, SENT]


def test_five_answers_to_one_message_are_outside_the_cap(capped):
    reply = capped.reply(QUESTION)
    for _ in range(6):
        say(capped, reply.id)
    capped.turn()
    assert capped.texts() == [SENT] * 6 + [CAPPED]
    say(capped, reply.id)
    capped.turn()
    assert capped.texts()[-1] == CAPPED
    say(capped, capped.reply("Et demain ?").id)
    capped.turn()
    assert capped.texts()[-1] == SENT


def test_an_answer_after_72_hours_is_capped_and_one_that_waited_is_not(capped):
    reply = capped.reply(QUESTION)
    closed = SendHoursRule(days=(OpenHours(0, 1),) + (None,) * 6)
    capped.settings(SmsSettings(brand="Shop", rules=dict.fromkeys(OPEN, closed), caps=(Cap(1, 24 * 30),)))
    say(capped, reply.id)
    capped.turn()
    capped.settings(SmsSettings(brand="Shop", rules=OPEN, caps=(Cap(1, 24 * 30),)))
    shift = "UPDATE replies SET received_at = now() - interval '73 h' WHERE organization_id = %s"
    capped.alter(shift)
    # Written 71 hours after the message, and due two hours later.
    capped.alter(
        "UPDATE texts SET created_at = now() - interval '2 h', due_at = now() - interval '1 s', state = 'queued', reason = NULL"
        " WHERE organization_id = %s AND origin_kind = 'answer'"
    )
    say(capped, reply.id)
    capped.turn()
    assert capped.texts() == [SENT, SENT, CAPPED]
    assert decision(capped) == ("answered", None)


def test_an_answer_that_was_not_sent_leaves_the_reply_open(capped):
    reply = capped.reply(QUESTION)
    capped.gateway.answer = Refused("30003", "Unreachable handset")
    say(capped, reply.id)
    capped.turn()
    assert capped.texts()[-1][0] == "failed"
    assert decision(capped)[0] is None
    capped.gateway.answer = None
    say(capped, reply.id)
    capped.turn()
    assert decision(capped) == ("answered", None)


def receive_receipt(desk, text_id, state):
    texting, receipt = desk.texting, {"provider_id": None, "attempt": None, "code": "30003", "is_stop": False}
    desk.do(lambda tx: apply_receipt(tx, desk.organization_id, text_id, state, texting=texting, **receipt))


def test_a_reply_is_open_again_after_all_its_answers_failed_on_their_way(capped):
    reply = capped.reply(QUESTION)
    first, second = say(capped, reply.id), say(capped, reply.id)
    capped.turn()
    assert decision(capped) == ("answered", None)
    receive_receipt(capped, first, TextState.FAILED)
    assert decision(capped) == ("answered", None)
    receive_receipt(capped, second, TextState.FAILED)
    assert decision(capped) == (None, None)
    say(capped, reply.id)
    capped.turn()
    assert decision(capped) == ("answered", None)


def test_keywords_are_not_answered(capped):
    for keyword in ("HELP", "STOP", "START"):
        with pytest.raises(MessagingError, match="processed automatically"):
            say(capped, capped.reply(keyword).id)


def test_a_capped_answer_is_sent_anyway_once_and_only_past_the_cap(capped):
    reply = capped.reply(QUESTION)
    capped.alter("UPDATE replies SET received_at = now() - interval '4 days' WHERE organization_id = %s")
    text_id = say(capped, reply.id)
    capped.turn()
    assert capped.texts()[-1] == CAPPED
    capped.opt_out()
    send_anyway(capped, text_id)
    capped.turn()
    assert capped.texts()[-1] == ("skipped", "no_consent")
    with pytest.raises(MessagingError, match="Only an answer"):
        send_anyway(capped, text_id)


@pytest.mark.parametrize("obstacle", ["suppressed", "hours", "country_not_set"])
def test_what_is_sent_anyway_still_passes_the_gate(capped, obstacle):
    reply = capped.reply(QUESTION)
    capped.alter("UPDATE replies SET received_at = now() - interval '4 days' WHERE organization_id = %s")
    text_id = say(capped, reply.id)
    capped.turn()
    if obstacle == "suppressed":
        capped.reply("arrêtez de m'écrire")
    elif obstacle == "hours":
        capped.settings(SmsSettings(brand="Shop", rules=dict.fromkeys(OPEN, CLOSED), caps=(Cap(1, 24),)))
    else:
        capped.alter(
            "UPDATE texts SET body = 'Shop: without a notice' WHERE organization_id = %s AND origin_kind = 'answer'"
        )
    send_anyway(capped, text_id)
    capped.turn()
    assert capped.texts()[-1] == ("skipped", obstacle)
    assert len(capped.gateway.sent) == 1


def test_what_is_sent_anyway_waits_while_texts_are_held_and_is_gone_after_an_erasure(capped):
    profile_id = capped.customer("C1", phone=NUMBER)
    reply = capped.reply(QUESTION)
    capped.alter("UPDATE replies SET received_at = now() - interval '4 days' WHERE organization_id = %s")
    text_id = say(capped, reply.id)
    capped.turn()
    assert capped.texts()[-1] == CAPPED
    texting = capped.texting
    capped.do(lambda tx: hold(tx, capped.organization_id, texting, reason="A test."))
    send_anyway(capped, text_id)
    capped.turn()
    assert (capped.texts()[-1], len(capped.gateway.sent)) == (("queued", None), 1)
    held = capped.texting
    capped.do(lambda tx: erase_profiles(tx, capped.organization_id, [ById(profile_id)], secret=held.secret))
    capped.do(lambda tx: release(tx, capped.organization_id, held))
    capped.turn()
    assert len(capped.gateway.sent) == 1
    with pytest.raises(MessagingError, match=r"Only an answer|no text with this id"):
        send_anyway(capped, text_id)


def test_a_text_of_another_origin_or_of_unknown_outcome_is_not_sent_anyway(capped):
    capped.order()
    capped.turn()
    assert capped.texts()[-1] == CAPPED
    [(of_person,)] = capped.sql("SELECT id FROM texts WHERE organization_id = %s AND reason = 'cap'")
    capped.gateway.answer = Unclear("lost")
    lost = say(capped, capped.reply(QUESTION, number=NUMBER).id)
    capped.turn()
    assert decision(capped)[0] is None
    for text_id in (of_person, lost, new_uuid()):
        with pytest.raises(MessagingError, match=r"Only an answer|no text with this id"):
            send_anyway(capped, text_id)


def test_each_answer_has_its_author_and_a_decision_has_its_own(capped):
    reply, texting = capped.reply("arrêtez de m'écrire"), capped.texting
    first, second = (say(capped, reply.id, author_id=author) for author in (ADA, BOB))
    of_command = say(capped, reply.id)
    capped.do(
        lambda tx: decide(tx, capped.organization_id, reply.id, is_stop=False, decided_by="Cleo", texting=texting)
    )
    third = say(capped, reply.id, author_id=ADA)
    written = (first, second, of_command, third)
    authors = capped.do(lambda tx: find_authors(tx, capped.organization_id, written))
    assert authors == {first: ADA, second: BOB, third: ADA}
    assert decision(capped) == ("not_stop", "Cleo")
