"""What a pause, a withdrawal and sales of the same moment do to runs and their texts; what runs set, and at what cost."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.journeys.clock import HeldDatabase
from tests.journeys.desk import Desk
from tests.texts.desk import MAKE_DUE

from regulars.journeys import manage
from regulars.journeys.backtest.run import backtest
from regulars.journeys.runs.lifecycle import resume_run
from regulars.kit.refusals import NotPossible
from regulars.profiles.model import ATTRIBUTES_MAX
from regulars.texts.providers.base import NotReached

TEXT = {"do": "send_text", "text": "Merci"}
WAIT = {"do": "wait", "days": 2}
EXIT = {"do": "exit"}
MILLISECOND = timedelta(milliseconds=1)


def pause(desk, journey):
    return desk.do(lambda tx: manage.pause(tx, desk.organization_id, journey))


def queue_text(desk, *steps, **more):
    """A journey with one run whose text waits for the sender."""
    customer = desk.customer()
    desk.opt_in()
    journey = desk.journey(*(steps or (TEXT,)), **more)
    desk.sale(customer)
    desk.one_pass(desk.outbox)
    desk.one_pass(desk.runs_queue)
    assert desk.texts() == [("queued", None)]
    return journey


def test_a_paused_journey_holds_its_texts_and_going_on_releases_them(desk):
    journey = queue_text(desk)
    other = desk.journey(TEXT, trigger="return")
    pause(desk, journey)
    desk.work()
    assert (desk.sent, desk.texts()) == ([], [("queued", None)])
    # Nothing of it is due: the sender does not even look at the organization.
    assert desk.sql("SELECT count(*) FROM texts WHERE organization_id = %s AND due_at < expires_at") == [(0,)]
    pause(desk, other)
    desk.activate(other)
    desk.work()
    assert desk.sent == []
    desk.activate(journey)
    desk.work()
    assert len(desk.sent) == 1
    assert desk.outcomes(journey) == ["completed"]


def test_a_text_that_its_sender_puts_back_during_a_pause_waits_too(desk):
    journey = queue_text(desk)

    async def pause_and_fail(_text):
        async with desk.database.transaction() as tx:
            await manage.pause(tx, desk.organization_id, journey)
        return NotReached("no connection")

    desk.gateway.answer = pause_and_fail
    desk.turn()
    desk.gateway.answer = None
    desk.alter(MAKE_DUE)
    desk.turn()
    assert desk.sql("SELECT state, held_by FROM texts WHERE organization_id = %s") == [("queued", journey)]
    desk.activate(journey)
    desk.work()
    assert (desk.texts(), len(desk.sent)) == ([("sent", None)], 2)


@pytest.mark.parametrize(("reason", "outcome"), [("expired", None), ("left", "left by a return")])
def test_a_text_ends_during_the_pause_when_it_expires_or_its_customer_leaves(desk, reason, outcome):
    journey = queue_text(desk, exit_on=["return"])
    pause(desk, journey)
    desk.turn()
    if reason == "expired":
        desk.alter("UPDATE texts SET due_at = created_at, expires_at = created_at WHERE organization_id = %s")
    else:
        [run] = desk.runs(journey)
        desk.sale(run.profile_id, kind="RETURN")
    desk.work()
    assert (desk.sent, desk.texts(), desk.outcomes(journey)) == ([], [("skipped", reason)], [outcome])
    desk.activate(journey)
    desk.work()
    assert (desk.sent, desk.outcomes(journey)) == ([], [outcome or "completed"])


@pytest.mark.parametrize("comes_first", ["sale", "consent"])
def test_a_withdrawal_ends_the_runs_of_older_sales_in_whatever_order_both_are_delivered(desk, comes_first):
    """Facts of one kind are delivered together, the kind of the oldest fact first."""
    customer, other = desk.customer(), desk.customer("C2")
    journey = desk.journey(WAIT, TEXT)
    desk.opt_in()
    desk.work()
    if comes_first == "sale":
        desk.sale(other)
        desk.opt_out()
        desk.sale(customer)
        outcome = None
    else:
        desk.opt_in("C2", "+33612345679")
        desk.sale(customer)
        desk.opt_out()
        outcome = "left by a withdrawal"
    desk.work()
    assert {run.profile_id: run.outcome for run in desk.runs(journey)}[customer] == outcome


def test_a_withdrawal_ends_runs_that_wait_for_a_person(desk):
    customer = desk.customer()
    desk.opt_in()
    journey = desk.journey(WAIT, TEXT)
    desk.sell(customer)
    desk.alter("UPDATE journey_runs SET state = 'parked', due_at = NULL WHERE organization_id = %s")
    # No journey is live and no run is on its way: the parked one alone needs to hear of it.
    pause(desk, journey)
    desk.work()
    desk.opt_out()
    desk.work()
    assert desk.outcomes(journey) == ["left by a withdrawal"]
    desk.activate(journey)
    desk.opt_in()
    [run] = desk.runs(journey)
    with pytest.raises(NotPossible, match="this one is ended"):
        desk.do(lambda tx: resume_run(tx, desk.organization_id, run.id))
    desk.pass_time()
    assert desk.sent == []


def play(desk, journey):
    texting = desk.texting
    played = desk.do(lambda tx: backtest(tx, desk.organization_id, journey, texting=texting, days=1)).as_data()
    return played["texts"], played["skipped"]


def branch_on(key, value):
    asked = {"type": "attribute", "key": key, "comparison": "is", "value": value}
    return {"do": "branch", "if": asked, "then": [{"do": "exit", "id": "set"}], "else": [{"do": "exit", "id": "not"}]}


def test_a_text_says_what_a_step_before_it_set(desk):
    customer = desk.customer("C1", tier="blue")
    desk.customer("C2", colour="x")
    desk.opt_in()
    journey = desk.journey(
        {"do": "set_attribute", "key": "tier", "value": "gold"},
        {"do": "set_attribute", "key": "colour", "value": "red"},
        {"do": "send_text", "text": "{{ profile.attributes.tier }} {{ profile.attributes.colour }}"},
        branch_on("tier", "gold"),
    )
    desk.sell(customer)
    assert desk.sent == ["Shop: gold red Reply STOP to opt out"]
    assert [run.step for run in desk.runs(journey)] == ["set"]
    assert play(desk, journey) == (1, {})


def test_a_refused_attribute_counts_neither_for_a_branch_nor_for_a_text(desk):
    customer = desk.customer("C1", **{f"k{number}": "x" for number in range(ATTRIBUTES_MAX)})
    desk.customer("C2", tier="blue")
    desk.opt_in()
    journey = desk.journey(
        {"do": "set_attribute", "key": "tier", "value": "gold"},
        {"do": "send_text", "text": "{{ profile.attributes.tier }}"},
        branch_on("tier", "gold"),
    )
    desk.sell(customer)
    [run] = desk.runs(journey)
    assert run.step == "not"
    assert ("1", "not set") in desk.events(run)
    assert desk.texts() == [("skipped", "missing_value: profile.attributes.tier")]
    assert play(desk, journey) == (0, {"missing_value: profile.attributes.tier": 1})


def test_attributes_of_many_runs_are_set_together(desk):
    desk.customer("C0", tier="blue")
    customers = [desk.customer(f"C{number}") for number in range(12)]
    steps = [{"do": "set_attribute", "key": key, "value": "gold"} for key in ("tier", "other")]
    for _ in range(2):
        desk.journey(*steps, branch_on("tier", "gold"))
    for customer in customers:
        desk.sale(customer)
    desk.one_pass(desk.outbox)
    desk.one_pass(desk.runs_queue)
    rows = desk.sql(
        "SELECT attributes ->> 'tier', attributes ->> 'other' FROM profiles WHERE organization_id = %s ORDER BY id"
    )
    assert rows == [("gold", "gold")] * 12
    # One statement has changed them all.
    [(statements,)] = desk.sql(
        "SELECT count(DISTINCT (xmin::text, cmin::text)) FROM profiles WHERE organization_id = %s"
    )
    assert statements == 1


def test_a_purchase_recorded_milliseconds_after_a_wait_began_counts(api_database_url):
    """The transaction that begins the wait reads the sales a little later than its own time."""
    with asyncio.Runner() as runner:
        database = HeldDatabase(api_database_url, pool_max=4)
        database.now = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=1)
        runner.run(database.open())
        try:
            desk = Desk(runner, database)
            customer = desk.customer()
            ways = {"then": [{"do": "exit", "id": "bought"}], "else": [{"do": "exit", "id": "waited"}]}
            journey = desk.journey({"do": "wait_for_purchase", "days": 7, **ways}, reentry={"policy": "never"})
            database.pass_time(MILLISECOND)
            desk.sale(customer)
            desk.one_pass(desk.outbox)
            database.pass_time(5 * MILLISECOND)
            desk.sale(customer)
            # What happened in between is known to those who listen before the wait begins.
            desk.one_pass(desk.outbox)
            database.pass_time(-3 * MILLISECOND)
            desk.one_pass(desk.runs_queue)
            database.pass_time(timedelta(days=8))
            desk.work()
            assert [run.step for run in desk.runs(journey)] == ["bought"]
        finally:
            runner.run(database.close())


@pytest.mark.parametrize(
    ("kinds", "minutes_ago", "outcome"),
    [
        (("PURCHASE", "RETURN"), (0, 0), "left by a return"),
        # As a file may have it, the newest first; and an exchange, whose return comes before.
        (("RETURN", "PURCHASE"), (1, 9), "left by a return"),
        (("RETURN", "PURCHASE"), (0, 0), None),
    ],
)
def test_a_return_recorded_in_the_transaction_of_its_purchase_ends_the_run(desk, kinds, minutes_ago, outcome):
    customer = desk.customer()
    journey = desk.journey(WAIT, exit_on=["return"])

    async def record(tx):
        return [
            await desk.write_sale(tx, customer, kind=kind, ago=timedelta(minutes=ago))
            for kind, ago in zip(kinds, minutes_ago, strict=True)
        ]

    sales = desk.do(record)
    desk.publish_sales(*sales)
    desk.work()
    assert desk.outcomes(journey) == [outcome]
    texting = desk.texting
    played = desk.do(lambda tx: backtest(tx, desk.organization_id, journey, texting=texting, days=1))
    assert dict(played.outcomes) == ({} if outcome is None else {outcome: 1})
