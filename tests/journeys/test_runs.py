"""Journeys on a real database: who enters, once, and what each step does."""

from datetime import timedelta

import pytest
from tests.links.test_links import host

from regulars.conditions.documents import DefinitionRefused
from regulars.journeys import manage
from regulars.journeys.definition import read_definition
from regulars.journeys.retention import erase_runs
from regulars.journeys.runs.fact_handlers import handle_messages
from regulars.journeys.runs.lifecycle import resume_run
from regulars.kit.refusals import NotPossible
from regulars.texts.facts import MessagesChanged

__all__ = ["host"]

TEXT = {"do": "send_text", "text": "Merci {{ profile.first_name }}"}
WAIT = {"do": "wait", "days": 2}


@pytest.mark.parametrize(("language", "sent"), [("fr", "Merci Zoé"), ("nl", "Thank you")])
def test_a_text_in_several_languages_is_chosen_by_the_customer(desk, language, sent):
    customer = desk.customer(language=language)
    desk.opt_in()
    content = {"attribute": "language", "default": "Thank you", "texts": {"fr": "Merci {{ profile.first_name }}"}}
    desk.journey({"do": "send_text", "text": content})
    desk.sell(customer)
    assert desk.sent == [f"Shop: {sent} Reply STOP to opt out"]


@pytest.mark.parametrize("times", [1, 3])
def test_a_sale_enters_a_journey_once_however_often_its_fact_is_delivered(desk, times):
    customer = desk.customer()
    journey = desk.journey(WAIT, {"do": "exit"})
    sale = desk.sale(customer)
    for _ in range(times):
        desk.publish_sales(sale)
        desk.work()
    desk.pass_time()
    desk.publish_sales(sale)
    desk.work()
    assert len(desk.runs(journey)) == 1


def test_anonymous_old_and_other_sales_start_no_run(desk):
    customer = desk.customer()
    journey = desk.journey(WAIT)
    desk.sale(None)
    desk.sale(customer, ago=timedelta(days=7, seconds=1))
    desk.sell(customer, kind="RETURN")
    assert desk.runs(journey) == []
    desk.sell(customer, ago=timedelta(days=6, hours=23))
    assert len(desk.runs(journey)) == 1


def test_facts_from_before_the_activation_or_during_a_pause_start_no_run(desk):
    customer = desk.customer()
    early = desk.sale(customer)
    journey = desk.journey(WAIT)
    desk.publish_sales(early)
    desk.do(lambda tx: manage.pause(tx, desk.organization_id, journey))
    during = desk.sale(customer)
    desk.work()
    desk.activate(journey)
    desk.publish_sales(during)
    desk.work()
    assert desk.runs(journey) == []
    desk.sell(customer)
    assert len(desk.runs(journey)) == 1


def test_a_fact_recorded_while_it_was_live_enters_even_if_the_worker_comes_later(desk):
    customer = desk.customer()
    journey = desk.journey(WAIT)
    desk.sale(customer)
    desk.do(lambda tx: manage.pause(tx, desk.organization_id, journey))
    desk.work()
    [run] = desk.runs(journey)
    # It waits for the journey to go on, and does nothing meanwhile.
    assert (run.state, run.due_at, desk.events(run)) == ("active", None, [(None, "entered")])
    desk.activate(journey)
    desk.work()
    assert desk.events(desk.runs(journey)[0])[-1] == ("1", "waits")


def test_an_archived_journey_starts_no_more_runs(desk):
    customer = desk.customer()
    journey = desk.journey(WAIT)
    desk.sale(customer)
    desk.do(lambda tx: manage.archive(tx, desk.organization_id, journey))
    desk.work()
    assert desk.runs(journey) == []


def test_a_consent_and_its_withdrawal_delivered_together_leave_no_run_behind(desk):
    desk.customer()
    journey = desk.journey(WAIT, TEXT, trigger="opt_in")
    desk.opt_in()
    desk.opt_out()
    desk.work()
    assert desk.outcomes(journey) == ["left by a withdrawal"]


def test_the_receipt_of_an_earlier_text_does_not_hurry_a_run(desk):
    customer = desk.customer()
    desk.opt_in()
    journey = desk.journey(TEXT, {"do": "send_text", "text": "Again", "id": "second"})
    desk.sell(customer)
    [run] = desk.runs(journey)
    # The cap skipped the second one, so the run has ended; put it back to where it waits for it.
    desk.alter(
        "UPDATE journey_runs SET state = 'active', step = 'second', waits_for = 'text', ended_at = NULL,"
        " due_at = now() + interval '1 day' WHERE organization_id = %s"
    )
    facts = [MessagesChanged("text", None, "journey", run.id, "1", customer, "delivered")]
    desk.do(lambda tx: handle_messages(tx, desk.organization_id, facts))
    desk.work()
    assert [it.state for it in desk.runs(journey)] == ["active"]


@pytest.mark.parametrize(
    ("reentry", "runs"),
    [({"policy": "always"}, 2), ({"policy": "never"}, 1), ({"policy": "after_days", "days": 3}, 1)],
)
def test_another_fact_starts_a_run_again_as_the_policy_says(desk, reentry, runs):
    customer = desk.customer()
    journey = desk.journey({"do": "exit"}, reentry=reentry)
    desk.sell(customer)
    desk.sell(customer)
    assert len(desk.runs(journey)) == runs
    desk.alter("UPDATE journey_customers SET entered_at = now() - interval '4 days' WHERE organization_id = %s")
    desk.sell(customer)
    assert len(desk.runs(journey)) == (runs if reentry["policy"] == "never" else runs + 1)


def test_one_run_for_a_customer_at_a_time(desk):
    customer = desk.customer()
    journey = desk.journey(WAIT)
    desk.sell(customer, customer)
    assert len(desk.runs(journey)) == 1


def test_the_filter_decides_by_declared_types_and_the_ticket(desk):
    gold, other = desk.customer("gold", tier="gold", points="120"), desk.customer("other", tier="blue", points="x")
    journey = desk.journey(
        {"do": "exit"},
        filter={
            "type": "all",
            "of": [
                {"type": "store", "any_of": ["PARIS"]},
                {"type": "amount", "at_least_cents": 1000},
                {"type": "currency", "any_of": ["EUR"]},
                {"type": "attribute", "key": "points", "comparison": "more", "value": "99.5"},
                {"type": "purchases", "in_days": 30, "none": True},
            ],
        },
    )
    desk.sale(other)
    desk.sell(gold, amount=999)
    assert desk.runs(journey) == []
    desk.alter("DELETE FROM sales_events WHERE organization_id = %s")
    desk.sell(gold)
    assert [run.profile_id for run in desk.runs(journey)] == [gold]


def test_consents_bring_customers_in_and_a_withdrawal_ends_their_runs(desk):
    desk.customer()
    journey = desk.journey(WAIT, TEXT, trigger="opt_in")
    desk.opt_in()
    desk.work()
    desk.opt_in()
    desk.work()
    assert [run.state for run in desk.runs(journey)] == ["active"]
    desk.opt_out()
    desk.work()
    assert desk.outcomes(journey) == ["left by a withdrawal"]
    desk.opt_in()
    desk.work()
    assert len(desk.runs(journey)) == 2
    desk.pass_time()
    assert desk.outcomes(journey) == ["left by a withdrawal", "completed"]
    assert len(desk.sent) == 1


def test_a_purchase_in_time_takes_one_way_and_none_the_other(desk):
    steps = ({"do": "wait_for_purchase", "days": 7, "then": [{"do": "set_attribute", "key": "again", "value": "true"}],
              "else": [{"do": "set_attribute", "key": "again", "value": "false"}]},)  # fmt: skip
    journey = desk.journey(*steps, reentry={"policy": "never"})
    buyer, other = desk.customer("buyer"), desk.customer("other")
    desk.sell(buyer, other)
    assert [run.waits_for for run in desk.runs(journey)] == ["purchase", "purchase"]
    desk.sell(buyer)
    desk.pass_time()
    rows = desk.sql("SELECT external_id, attributes ->> 'again' FROM profiles WHERE organization_id = %s ORDER BY 1")
    assert rows == [("buyer", "true"), ("other", "false")]
    assert desk.outcomes(journey) == ["completed", "completed"]


def test_an_exit_condition_ends_a_run_that_waits(desk):
    customer = desk.customer()
    journey = desk.journey(WAIT, TEXT, exit_on=["return"])
    desk.sell(customer)
    desk.sell(customer)
    assert desk.outcomes(journey) == [None]
    desk.sell(customer, kind="RETURN")
    assert desk.outcomes(journey) == ["left by a return"]


def test_a_branch_sees_the_customer_of_that_moment(desk):
    customer = desk.customer()
    branch = {"do": "branch", "if": {"type": "subscribed"}, "then": [TEXT], "else": [{"do": "exit", "id": "out"}]}
    journey = desk.journey(WAIT, branch)
    desk.sell(customer)
    desk.opt_in()
    desk.pass_time()
    [run] = desk.runs(journey)
    assert desk.events(run) == [
        (None, "entered"), ("1", "waits"), ("1", "went on"), ("2", "then"), ("2.then.1", "texts"), (None, "ended"),
    ]  # fmt: skip
    assert len(desk.sent) == 1


def test_a_pause_holds_runs_and_a_long_one_asks_what_becomes_of_them(desk):
    customer = desk.customer()
    journey = desk.journey(WAIT, {"do": "exit"})
    desk.sell(customer)
    desk.do(lambda tx: manage.pause(tx, desk.organization_id, journey))
    desk.pass_time()
    assert desk.outcomes(journey) == [None]
    desk.alter("UPDATE journeys SET paused_at = now() - interval '49 hours' WHERE organization_id = %s")
    with pytest.raises(NotPossible, match="48 hours"):
        desk.activate(journey)
    desk.activate(journey, waiting="continue")
    desk.pass_time()
    assert desk.outcomes(journey) == ["exited"]


def test_a_change_of_a_live_journey_makes_a_version_and_runs_finish_on_theirs(desk):
    customer, late = desk.customer("early"), desk.customer("late")
    journey = desk.journey(WAIT, {"do": "exit", "id": "old"})
    desk.sell(customer)
    changed = read_definition(b'{"name": "B", "trigger": "purchase", "steps": [{"do": "exit", "id": "new"}]}')
    desk.do(lambda tx: manage.update_journey(tx, desk.organization_id, journey, changed))
    desk.sell(late)
    desk.pass_time()
    assert [(run.version, run.step) for run in desk.runs(journey)] == [(1, "old"), (2, "new")]


def test_a_draft_with_faults_is_saved_and_cannot_go_live(desk):
    journey = desk.journey({"do": "wait"}, live=False)
    with pytest.raises(DefinitionRefused, match="1: The wait has no length"):
        desk.activate(journey)


def test_a_run_that_keeps_failing_is_parked_with_its_reason_and_can_be_resumed(desk, monkeypatch):
    customer, other = desk.customer("C1"), desk.customer("C2")
    journey = desk.journey({"do": "exit"})

    def fail(*_arguments, **_named):
        raise LookupError("planted")

    desk.sale(customer)
    desk.one_pass(desk.outbox)
    with monkeypatch.context() as broken:
        broken.setattr("regulars.journeys.runs.decide.graph_of", fail)
        for _ in range(6):
            desk.one_pass(desk.runs_queue)
            desk.alter(
                "UPDATE journey_runs SET due_at = now() - interval '1 second'"
                " WHERE organization_id = %s AND due_at IS NOT NULL"
            )
    [run] = desk.runs(journey)
    assert (run.state, run.due_at, run.attempts) == ("parked", None, 6)
    assert run.reason == "A step failed; the log of the worker says why."
    assert [row.detail["error"] for row in desk.trace(run) if row.event == "failed"] == ["LookupError"] * 6
    # It delays no other run, and continues when a user resumes it.
    desk.sell(other)
    desk.do(lambda tx: resume_run(tx, desk.organization_id, run.id))
    desk.work()
    assert desk.outcomes(journey) == ["exited", "exited"]


def test_an_erasure_leaves_the_totals_and_counts_the_open_run_as_ended(desk):
    customer = desk.customer()
    journey = desk.journey(WAIT)
    desk.sell(customer)
    desk.do(lambda tx: erase_runs(tx, desk.organization_id, [customer]))
    assert desk.runs(journey) == []
    rows = desk.sql(
        "SELECT step, event, sum(times)::int FROM journey_totals WHERE organization_id = %s GROUP BY 1, 2 ORDER BY 1, 2"
    )
    assert rows == [("", "entered", 1), ("1", "ended", 1), ("1", "waits", 1)]


def test_links_of_a_step_are_counted_for_the_journey_whatever_the_run(desk, host):
    customers = [desk.customer(f"C{number}") for number in range(2)]
    for number in range(2):
        desk.opt_in(f"C{number}", f"+3361234567{number}")
    text = {"do": "send_text", "text": '{{ link("https://shop.example/") }}'}
    journey = desk.journey(text, {**text, "id": "own", "personal_links": True})
    desk.sell(*customers)
    rows = desk.sql(
        "SELECT origin_kind, origin_id, step, profile_id FROM links WHERE organization_id = %s ORDER BY step, profile_id"
    )
    shared, *own = rows
    assert shared == ("journey", journey, "1", None)
    assert own == [("journey", journey, "own", it) for it in sorted(customers)]
