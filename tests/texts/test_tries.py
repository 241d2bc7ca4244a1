"""How often a text is tried, and which outcome counts when a claim seems to have expired."""

from datetime import UTC, datetime

import pytest
from tests.support.gateway import OPEN
from tests.texts.desk import MAKE_DUE

from regulars.links.origin_kind import OriginKind
from regulars.texts.providers.base import Accepted, NotReached, Refused, Unclear
from regulars.texts.request import resend, send_past_cap
from regulars.texts.send import TextQueue
from regulars.texts.settings.model import Cap, OpenHours, SendHoursRule, SmsSettings
from regulars.texts.stops import hold, release
from regulars.work.clock_steps import pull_forward


def test_claims_that_were_not_dialled_do_not_count_as_tries(desk, monkeypatch):
    """Four slow seconds of a busy worker, and then connections that fail: each of the five tries is made."""
    desk.subscribe()
    desk.order()
    monkeypatch.setattr("regulars.texts.send.DIAL_WITHIN_S", -1.0)
    for _ in range(4):
        desk.turn()
        [(is_in_a_second,)] = desk.sql(
            "SELECT due_at BETWEEN now() AND now() + interval '1 second' FROM texts WHERE organization_id = %s"
        )
        assert is_in_a_second
        desk.alter(MAKE_DUE)
    monkeypatch.undo()
    desk.gateway.answer = NotReached("refused")
    for _ in range(4):
        desk.turn()
        assert desk.texts() == [("queued", None)]
        desk.alter(MAKE_DUE)
    desk.turn()
    assert desk.texts() == [("failed", "not_reached")]
    assert desk.sql("SELECT attempts, tries FROM texts WHERE organization_id = %s") == [(9, 5)]
    assert [text.attempt for text in desk.gateway.sent] == [5, 6, 7, 8, 9]


def test_a_text_that_no_claim_dials_ends_when_it_expires(desk, monkeypatch):
    desk.subscribe()
    desk.order()
    monkeypatch.setattr("regulars.texts.send.DIAL_WITHIN_S", -1.0)
    desk.turn()
    desk.alter("UPDATE texts SET due_at = created_at, expires_at = created_at WHERE organization_id = %s")
    desk.turn()
    assert (desk.texts(), desk.gateway.sent) == ([("skipped", "expired")], [])


def test_a_text_that_a_user_sends_again_has_all_its_tries(desk):
    desk.subscribe()
    text_id = desk.order()
    desk.gateway.answer = NotReached("refused")
    for _ in range(5):
        desk.turn()
        desk.alter(MAKE_DUE)
    assert desk.texts() == [("failed", "not_reached")]
    desk.do(lambda tx: resend(tx, desk.organization_id, text_id))
    desk.turn()
    assert desk.texts() == [("queued", None)]


def test_a_text_that_was_tried_waits_for_the_opening_hour_and_its_retry_waits_an_hour_at_most(desk):
    two_hours_ahead = "UPDATE texts SET due_at = now() + interval '2 hours' WHERE organization_id = %s"
    desk.subscribe()
    desk.order()
    desk.gateway.answer = NotReached("refused")
    desk.turn()
    desk.alter(two_hours_ahead)
    assert desk.organization_id in desk.runner.run(pull_forward(desk.database, desk.texts_queue))
    in_two_days = (datetime.now(UTC).weekday() + 2) % 7
    days = tuple(OpenHours(0, 24 * 60) if day == in_two_days else None for day in range(7))
    desk.settings(SmsSettings(rules=dict.fromkeys(OPEN, SendHoursRule(days=days, on_holidays=True))))
    desk.turn()
    waiting = desk.sql("SELECT due_at > now() + interval '2 hours', tries FROM texts WHERE organization_id = %s")
    assert waiting == [(True, 1)]
    assert desk.organization_id not in desk.runner.run(pull_forward(desk.database, desk.texts_queue))


@pytest.mark.parametrize(
    ("outcome", "final"),
    [
        (Accepted("SM1"), ("sent", None)),
        (Refused("30003", "Unreachable"), ("failed", "refused 30003: Unreachable")),
        (Unclear("lost"), ("unknown", "The worker ended before the outcome was known.")),
        # A text that may have been sent is not tried again by itself.
        (NotReached("refused"), ("failed", "not_reached")),
    ],
)
def test_a_text_that_a_step_of_the_clock_made_unknown_gets_its_outcome_and_is_not_dialled_again(desk, outcome, final):
    """The clock is set forward during the call, and another worker finds the claim expired."""
    desk.subscribe()
    desk.order()
    other = TextQueue({"simulator": desk.gateway})

    async def send_meanwhile(_text):
        async with desk.database.transaction() as tx:
            await tx.execute(MAKE_DUE, (desk.organization_id,))
        await other.run_pass(desk.database, desk.organization_id)
        return outcome

    desk.gateway.answer = send_meanwhile
    desk.turn()
    assert desk.texts() == [final]
    desk.turn()
    assert len(desk.gateway.sent) == 1


@pytest.mark.parametrize("way", ["released", "sent anyway"])
def test_a_text_that_a_user_let_go_on_waits_for_no_clock_that_is_set_back(desk, way):
    desk.settings(SmsSettings(brand="Shop", rules=OPEN, caps=(Cap(1, 24),)))
    desk.subscribe()
    if way == "sent anyway":
        desk.order()
        reply = desk.reply("A quelle heure ouvrez-vous ?")
        desk.alter("UPDATE replies SET received_at = now() - interval '4 days' WHERE organization_id = %s")
        text_id = desk.order(origin_kind=OriginKind.ANSWER, origin_id=reply.id)
        desk.turn()
        desk.do(lambda tx: send_past_cap(tx, desk.organization_id, text_id))
    else:
        desk.order()
        texting = desk.texting
        desk.do(lambda tx: hold(tx, desk.organization_id, texting, reason="A test."))
        desk.turn()
        held = desk.texting
        desk.do(lambda tx: release(tx, desk.organization_id, held))
        desk.turn(desk.resumed)
    desk.alter(
        "UPDATE texts SET created_at = now() + interval '2 hours', due_at = now() + CASE WHEN due_at > created_at"
        " THEN interval '121 minutes' ELSE interval '2 hours' END WHERE organization_id = %s"
    )
    desk.runner.run(pull_forward(desk.database, desk.texts_queue))
    is_due = "SELECT due_at <= now() FROM texts WHERE organization_id = %s AND state = 'queued'"
    assert desk.sql(is_due) == [(True,)]
