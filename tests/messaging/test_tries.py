"""How often a text is tried, and which outcome counts when a claim seems to have expired."""

import pytest
from tests.messaging.desk import MAKE_DUE

from regulars.messaging.providers.base import Accepted, NotReached, Refused, Unclear
from regulars.messaging.request import resend
from regulars.messaging.send import TextQueue


def test_claims_that_were_not_dialled_do_not_count_as_tries(desk, monkeypatch):
    """Four slow seconds of a busy worker, and then connections that fail: each of the five tries is made."""
    desk.subscribe()
    desk.order()
    monkeypatch.setattr("regulars.messaging.send.DIAL_WITHIN_S", -1.0)
    for _ in range(4):
        desk.turn()
        assert desk.sql("SELECT due_at > now() FROM texts WHERE organization_id = %s") == [(True,)]
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


@pytest.mark.parametrize(
    ("outcome", "final"),
    [
        (Accepted("SM1"), ("sent", None)),
        (Refused("30003", "Unreachable"), ("failed", "refused 30003: Unreachable")),
        (Unclear("lost"), ("unknown", "The worker ended before the outcome was known.")),
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
    assert len(desk.gateway.sent) == 1
