"""Which profile a number is linked to, and withdrawals that name a profile."""

from datetime import timedelta

import pytest
from tests.consent.desk import DAY, MINUTE, NOW, NUMBER, PROOF, Desk, withdrawal

from regulars.consent.model import Outcome, Status

MILLISECOND = timedelta(milliseconds=1)
OTHER_NUMBER = "+447400123456"


def test_opt_out_by_profile_withdraws_every_linked_number_and_shows_the_latest(desk: Desk) -> None:
    desk.profile("CUST-1", phone_number="+12125550100")
    later = desk.opt_in(NUMBER, profile="CUST-1", at=NOW - MINUTE).subscription
    earlier = desk.opt_in(OTHER_NUMBER, profile="CUST-1", at=NOW - DAY).subscription
    withdrawn = desk.opt_out(None, profile="CUST-1", now=NOW + MINUTE)
    assert withdrawn.outcome is Outcome.UNSUBSCRIBED
    assert withdrawn.subscription.id == later.id
    assert [it.id for it in withdrawn.subscriptions] == [later.id, earlier.id]
    assert {it.state.status for it in withdrawn.subscriptions} == {Status.UNSUBSCRIBED}
    assert desk.opt_out(None, profile="CUST-1", now=NOW + DAY).outcome is Outcome.ALREADY_UNSUBSCRIBED


def test_opt_out_by_profile_says_unsubscribed_when_it_withdrew_any_number(desk: Desk) -> None:
    desk.profile("CUST-1")
    desk.opt_in(NUMBER, profile="CUST-1", at=NOW - MINUTE)
    desk.opt_in(OTHER_NUMBER, profile="CUST-1", at=NOW - DAY)
    desk.opt_out(NUMBER)
    assert desk.opt_out(None, profile="CUST-1", now=NOW + MINUTE).outcome is Outcome.UNSUBSCRIBED


def test_opt_out_by_profile_without_a_linked_number_suppresses_its_own(desk: Desk) -> None:
    profile_id = desk.profile("CUST-1", phone_number=NUMBER)
    withdrawn = desk.opt_out(None, profile="CUST-1")
    state = withdrawn.subscription.state
    assert (withdrawn.outcome, state.phone_number, state.profile_id) == (Outcome.UNSUBSCRIBED, NUMBER, profile_id)
    assert desk.opt_in(at=NOW - DAY, now=NOW + MINUTE).outcome is Outcome.SUPERSEDED


def test_opt_out_by_both_withdraws_only_the_number(desk: Desk) -> None:
    desk.profile("CUST-1")
    desk.opt_in(NUMBER, profile="CUST-1")
    other = desk.opt_in(OTHER_NUMBER, profile="CUST-1").subscription
    withdrawn = desk.opt_out(NUMBER, profile="CUST-1", now=NOW + MINUTE)
    assert [it.state.phone_number for it in withdrawn.subscriptions] == [NUMBER]
    assert desk.find(other.id).state.status is Status.SUBSCRIBED


@pytest.mark.parametrize("known", [True, False])
def test_opt_out_by_both_is_refused_when_the_number_is_not_linked_to_the_profile(desk: Desk, *, known: bool) -> None:
    desk.profile("CUST-1")
    if known:
        desk.opt_in(NUMBER, proof=PROOF)
    assert desk.refusal(withdrawal(NUMBER, profile="CUST-1")) == (400, "VALIDATION_ERROR")
    statuses = desk.sql("SELECT status FROM subscriptions WHERE organization_id = %s")
    assert statuses == ([("SUBSCRIBED",)] if known else [])


def test_opt_out_by_both_is_refused_when_the_profile_s_own_number_is_linked_to_another(desk: Desk) -> None:
    desk.profile("CUST-1", phone_number=NUMBER)
    other = desk.profile("CUST-2")
    subscription = desk.opt_in(NUMBER, profile="CUST-2").subscription
    assert desk.refusal(withdrawal(NUMBER, profile="CUST-1")) == (400, "VALIDATION_ERROR")
    state = desk.find(subscription.id).state
    assert (state.status, state.profile_id) == (Status.SUBSCRIBED, other)
    assert len(desk.entries(subscription.id)) == 1


def test_opt_out_by_both_sees_a_link_that_was_made_earlier_in_its_batch(desk: Desk) -> None:
    desk.profile("CUST-1", phone_number=NUMBER)
    desk.profile("CUST-2", phone_number=NUMBER)
    first, second = desk.opt_outs(withdrawal(NUMBER, profile="CUST-1"), withdrawal(NUMBER, profile="CUST-2"))
    assert getattr(first, "outcome", None) is Outcome.UNSUBSCRIBED
    assert getattr(second, "code", None) == "VALIDATION_ERROR"


def test_opt_out_by_both_takes_the_profile_s_own_number_where_no_profile_is_linked_to_it(desk: Desk) -> None:
    profile_id = desk.profile("CUST-1", phone_number=NUMBER)
    desk.profile("CUST-2", phone_number=NUMBER)
    subscription = desk.opt_in(NUMBER).subscription
    assert subscription.profile is None
    assert desk.opt_out(NUMBER, profile="CUST-1", now=NOW + MINUTE).outcome is Outcome.UNSUBSCRIBED
    assert desk.find(subscription.id).state.profile_id == profile_id


def test_a_withdrawal_more_than_five_minutes_ahead_is_refused(desk: Desk) -> None:
    assert desk.refusal(withdrawal(at=NOW + 5 * MINUTE + MILLISECOND)) == (400, "VALIDATION_ERROR")


def test_a_withdrawal_from_a_fast_clock_counts_from_its_arrival(desk: Desk) -> None:
    desk.opt_in()
    assert desk.opt_out(at=NOW + 5 * MINUTE).outcome is Outcome.UNSUBSCRIBED
    assert desk.opt_in(at=NOW + MINUTE, now=NOW + MINUTE).outcome is Outcome.RESUBSCRIBED


def test_one_batch_may_withdraw_a_number_and_its_profile(desk: Desk) -> None:
    desk.profile("CUST-1", phone_number=NUMBER)
    results = desk.opt_outs(withdrawal(NUMBER), withdrawal(None, profile="CUST-1"), withdrawal(None, profile="nobody"))
    assert [getattr(result, "outcome", None) for result in results] == [
        Outcome.UNSUBSCRIBED,
        Outcome.ALREADY_UNSUBSCRIBED,
        None,
    ]
    assert results[0].subscription.profile is None
    assert results[1].subscription.profile.external_id == "CUST-1"
