"""Each row of section 3.1 of the specification, and the rulings around it."""

from datetime import timedelta

import pytest
from tests.consent.desk import DAY, MINUTE, NOW, NUMBER, PROOF, Desk, consent

from regulars.consent.model import Outcome, Proof

MILLISECOND = timedelta(milliseconds=1)


@pytest.mark.parametrize("change", [{"source": "WEBSITE"}, {"at": NOW - MINUTE + MILLISECOND}, {"profile": "CUST-1"}])
def test_opt_in_with_a_newer_time_or_another_source_or_profile_is_updated(desk: Desk, change) -> None:
    desk.profile("CUST-1")
    desk.opt_in(proof=PROOF)
    recorded = desk.opt_in(**{"proof": PROOF, **change})
    assert recorded.outcome is Outcome.UPDATED
    assert recorded.subscription.state.proof == PROOF


def test_an_inbound_stop_reply_withdraws_consent(desk: Desk) -> None:
    first = desk.opt_in()
    stopped = desk.stop(text="Arrêt!", now=NOW + MINUTE)
    assert stopped.outcome is Outcome.UNSUBSCRIBED
    assert stopped.subscription.state.unsubscribed_at == NOW + MINUTE
    assert '"message":"Arrêt!","message_id":"msg-1"' in (desk.entries(first.subscription.id)[-1].payload or "")


def test_an_inbound_stop_counts_after_all_that_is_recorded_although_the_clock_is_behind(desk: Desk) -> None:
    desk.opt_in(at=NOW)
    stopped = desk.stop(now=NOW - MINUTE)
    assert (stopped.outcome, stopped.subscription.state.unsubscribed_at) == (Outcome.UNSUBSCRIBED, NOW)


def test_an_inbound_start_subscribes_again_with_the_message_as_proof_and_keeps_the_profile(desk: Desk) -> None:
    profile_id = desk.profile("CUST-1")
    desk.opt_in(profile="CUST-1", proof=PROOF)
    desk.stop(now=NOW + MINUTE)
    started = desk.start(now=NOW + 2 * MINUTE)
    state = started.subscription.state
    assert (started.outcome, started.automation) == (Outcome.RESUBSCRIBED, "eligible")
    assert (state.source, state.proof, state.profile_id) == ("SMS_KEYWORD", Proof(source_text="Start"), profile_id)


@pytest.mark.parametrize(
    ("age", "state"),
    [
        (7 * DAY, "eligible"),
        (7 * DAY + MILLISECOND, "stale_fact"),
        (-4 * MINUTE, "eligible"),
    ],
)
def test_a_consent_older_than_7_days_is_recorded_but_triggers_no_journey(desk: Desk, age, state) -> None:
    recorded = desk.opt_in(at=NOW - age)
    assert (recorded.outcome, recorded.automation) == (Outcome.CREATED, state)
    assert recorded.subscription.state.consented_at == NOW - age
    desk.opt_out(NUMBER, at=NOW - 30 * DAY)
    assert desk.opt_in("+447400123456", at=NOW - age).automation is state


def test_a_consent_more_than_five_minutes_ahead_is_refused_and_leaves_nothing(desk: Desk) -> None:
    assert desk.refusal(consent(at=NOW + 5 * MINUTE + MILLISECOND)) == (400, "CONSENTED_AT_IN_FUTURE")
    assert desk.sql("SELECT id FROM subscriptions WHERE organization_id = %s") == []
    assert desk.opt_in(at=NOW + 5 * MINUTE).outcome is Outcome.CREATED


def test_the_same_number_in_two_organizations_is_independent(desk: Desk) -> None:
    other = desk.neighbour()
    first, second = desk.opt_in(), other.opt_in()
    desk.opt_out(now=NOW + MINUTE)
    assert second.outcome is Outcome.CREATED
    assert first.subscription.id != second.subscription.id
    assert other.find(second.subscription.id) == second.subscription
    assert desk.head(first.subscription.id).number_hash != other.head(second.subscription.id).number_hash


def test_duplicates_in_one_batch_are_folded_in_order_and_each_sees_its_own_state(desk: Desk) -> None:
    results = desk.opt_ins(
        consent(at=NOW - 2 * MINUTE),
        consent("+447400123456"),
        consent(at=NOW - MINUTE, source="WEBSITE"),
        consent(at=NOW - MINUTE, source="WEBSITE"),
        consent(at=NOW - 3 * MINUTE),
        consent(at=NOW + DAY),
    )
    assert [getattr(result, "outcome", None) for result in results] == [
        Outcome.CREATED,
        Outcome.CREATED,
        Outcome.UPDATED,
        Outcome.ALREADY_SUBSCRIBED,
        Outcome.SUPERSEDED,
        None,
    ]
    sources = [result.subscription.state.source for result in results[:-1]]
    assert sources == ["LOYALTY_PROGRAM", "LOYALTY_PROGRAM", "WEBSITE", "WEBSITE", "WEBSITE"]
    assert len({result.subscription.id for result in results[:-1]}) == 2
