"""What happens at the same time as a run's turn: sales that commit late, customers who leave, people who erase."""

import asyncio

import pytest
from tests.journeys.desk import Desk, wait_for_next_millisecond
from tests.support.gateway import OPEN

from regulars.journeys import manage
from regulars.journeys.runs import queries
from regulars.kit.ids import ById
from regulars.privacy import erase as privacy
from regulars.profiles.personal import lock_profiles_to_erase
from regulars.texts.settings.model import SendHoursRule, SmsSettings

WAIT = {"do": "wait", "days": 2}
TEXT = {"do": "send_text", "text": "Merci"}
BOUGHT = {
    "do": "wait_for_purchase",
    "days": 7,
    "then": [{"do": "exit", "id": "bought"}],
    "else": [{"do": "exit", "id": "waited"}],
}


def steps(desk: Desk, journey):
    return [run.step for run in desk.runs(journey)]


def test_a_purchase_that_began_before_a_wait_and_commits_after_it_began_counts(desk):
    customer = desk.customer()
    journey = desk.journey(BOUGHT, reentry={"policy": "never"})
    desk.sale(customer)
    desk.one_pass(desk.outbox)

    async def play():
        async with desk.database.transaction() as tx:
            sale = await desk.write_sale(tx, customer)
            wait_for_next_millisecond()
            # The run comes to its wait while the sale is not yet visible to other transactions.
            await desk.runs_queue.run_pass(desk.database, desk.organization_id)
        return sale

    late = desk.runner.run(play())
    [run] = desk.runs(journey)
    assert run.waits_for == "purchase"
    [(created_at,)] = desk.sql("SELECT created_at FROM sales_events WHERE organization_id = %s AND id = %s", late)
    assert created_at < run.waiting_since
    desk.publish_sales(late)
    desk.work()
    assert steps(desk, journey) == ["bought"]


def test_a_purchase_that_was_there_when_the_wait_began_does_not_count(desk):
    customer = desk.customer()
    journey = desk.journey(WAIT, BOUGHT, reentry={"policy": "never"})
    desk.sell(customer)
    between = desk.sale(customer)
    desk.work()
    desk.alter("UPDATE journey_runs SET due_at = now() - interval '1 second' WHERE organization_id = %s")
    desk.work()
    desk.publish_sales(between)
    desk.work()
    [run] = desk.runs(journey)
    assert run.waits_for == "purchase"
    assert between in run.seen_sales
    desk.sell(customer)
    assert steps(desk, journey) == ["bought"]


def test_a_purchase_after_the_end_of_a_wait_comes_too_late_also_if_the_worker_does(desk):
    customer = desk.customer()
    journey = desk.journey(BOUGHT, reentry={"policy": "never"})
    desk.sell(customer)
    desk.alter(
        "UPDATE journey_runs SET waiting_since = now() - interval '8 days',"
        " due_at = now() - interval '1 day' WHERE organization_id = %s"
    )
    desk.sell(customer)
    assert steps(desk, journey) == ["waited"]


@pytest.mark.parametrize("is_return_first", [True, False])
def test_a_sale_recorded_between_the_fact_and_the_entry_ends_the_run(desk, is_return_first):
    customer = desk.customer()
    journey = desk.journey(WAIT, exit_on=["return"], reentry={"policy": "never"})

    def record(kind):
        return desk.do(lambda tx: desk.write_sale(tx, customer, kind=kind))

    bought, returned = record("PURCHASE"), record("RETURN")
    for sale in (returned, bought) if is_return_first else (bought, returned):
        desk.publish_sales(sale)
        desk.one_pass(desk.outbox)
    desk.work()
    assert desk.outcomes(journey) == ["left by a return"]


@pytest.mark.parametrize("how", ["return", "withdrawal", "archive"])
def test_a_run_that_leaves_takes_its_queued_text_with_it(desk, how):
    customer = desk.customer()
    desk.opt_in()
    tomorrow = (desk.now().weekday() + 2) % 7
    days = tuple(OPEN["FR"].days[0] if day == tomorrow else None for day in range(7))
    desk.settings(SmsSettings(brand="Shop", rules={"FR": SendHoursRule(days=days, on_holidays=True)}))
    journey = desk.journey(TEXT, exit_on=["return"])
    desk.sell(customer)
    assert desk.texts() == [("queued", None)]
    if how == "return":
        desk.sale(customer, kind="RETURN")
    elif how == "withdrawal":
        desk.opt_out()
    else:
        desk.do(lambda tx: manage.archive(tx, desk.organization_id, journey))
    desk.work()
    assert [run.state for run in desk.runs(journey)] == ["ended"]
    assert desk.texts() == [("skipped", "left")]


def test_a_run_that_leaves_in_its_own_turn_takes_its_queued_text_too(desk):
    customer = desk.customer()
    desk.opt_in()
    journey = desk.journey(TEXT, exit_on=["return"])
    desk.sale(customer)
    desk.one_pass(desk.outbox)
    desk.one_pass(desk.runs_queue)
    desk.do(lambda tx: desk.write_sale(tx, customer, kind="RETURN"))
    desk.alter("UPDATE journey_runs SET due_at = now() - interval '1 second' WHERE organization_id = %s")
    desk.one_pass(desk.runs_queue)
    assert desk.outcomes(journey) == ["left by a return"]
    assert desk.texts() == [("skipped", "left")]


def test_who_ends_a_run_does_not_wait_for_who_decides_about_an_entry(desk):
    customers = [desk.customer(f"C{number}") for number in range(4)]
    journey = desk.journey(WAIT)
    desk.sell(*customers)

    async def play():
        async with desk.database.transaction() as tx:
            places = await queries.lock_customers(tx, desk.organization_id, journey, sorted(customers))
            assert all(run is not None for _, run in places.values())
            async with desk.database.transaction() as other:
                await manage.archive(other, desk.organization_id, journey)

    desk.runner.run(asyncio.wait_for(play(), 10))
    assert desk.outcomes(journey) == ["archived"] * 4


def test_a_place_is_free_when_its_run_has_ended_or_is_gone(desk):
    customer = desk.customer()
    journey = desk.journey({"do": "exit"})

    def place():
        return desk.do(lambda tx: queries.lock_customers(tx, desk.organization_id, journey, [customer]))[customer][1]

    desk.sale(customer)
    desk.one_pass(desk.outbox)
    assert place() is not None
    desk.work()
    assert place() is None
    desk.alter("DELETE FROM journey_runs WHERE organization_id = %s")
    assert place() is None


def test_a_run_that_sets_an_attribute_and_an_erasure_do_not_wait_for_each_other(desk):
    gone, stays = desk.customer("C1"), desk.customer("C2")
    journey = desk.journey({"do": "set_attribute", "key": "tier", "value": "gold"})
    desk.sale(gone)
    desk.sale(stays)
    desk.one_pass(desk.outbox)
    secret = desk.texting.secret

    async def play():
        async with desk.database.transaction() as tx:
            found = await lock_profiles_to_erase(tx, desk.organization_id, [ById(gone)])
            # The pass waits for no lock: it takes the other run, and has released this one when the erasure needs it.
            await asyncio.wait_for(desk.runs_queue.run_pass(desk.database, desk.organization_id), 10)
            people = privacy._describe_people(list(found.values()), secret=secret)
            await privacy._erase(tx, desk.organization_id, people)  # the second half of an erasure

    desk.runner.run(play())
    assert [(run.profile_id, run.outcome) for run in desk.runs(journey)] == [(stays, "completed")]


def test_the_need_for_facts_ends_with_the_last_run_and_not_while_a_journey_goes_live(desk):
    def interests():
        return desk.sql("SELECT count(*) FROM interests WHERE organization_id = %s")[0][0]

    desk.customer()
    first = desk.journey(WAIT, trigger="opt_in")
    second = desk.journey(WAIT, live=False)
    desk.opt_in()
    desk.work()
    desk.do(lambda tx: manage.pause(tx, desk.organization_id, first))
    desk.work()
    assert interests() == 2, "a run is still on its way"

    async def play():
        async with desk.database.transaction() as tx:
            await manage.activate(tx, desk.organization_id, second)
            async with desk.database.transaction() as other:
                await manage.archive(other, desk.organization_id, first)
            # No live journey is visible, and no run; but another transaction is activating one.
            await asyncio.wait_for(desk.runs_queue.run_pass(desk.database, desk.organization_id), 10)

    desk.runner.run(play())
    assert interests() == 2
    desk.do(lambda tx: manage.archive(tx, desk.organization_id, second))
    desk.work()
    assert interests() == 0


def test_a_withdrawal_and_a_pause_at_once_end_without_a_circle(desk):
    customers = [desk.customer(f"C{number}") for number in range(6)]
    for position, _ in enumerate(customers):
        desk.opt_in(f"C{position}", f"+3361234560{position}")
    journey = desk.journey(WAIT, TEXT)
    desk.sell(*customers)
    for position in (5, 1, 3):
        desk.opt_out(f"+3361234560{position}")

    async def pause():
        async with desk.database.transaction() as tx:
            await manage.pause(tx, desk.organization_id, journey)

    async def play():
        await asyncio.gather(pause(), desk.outbox.run_pass(desk.database, desk.organization_id))

    desk.runner.run(asyncio.wait_for(play(), 20))
    desk.work()
    assert sorted(run.state for run in desk.runs(journey)) == ["active"] * 3 + ["ended"] * 3
