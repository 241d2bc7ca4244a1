"""A journey is paused while the worker is under way: what it takes later neither advances nor leaves."""

import asyncio
from datetime import timedelta

import pytest
from tests.support.waiting import until_locked
from tests.texts.desk import MAKE_DUE

from regulars.journeys import manage
from regulars.journeys.runs import lifecycle, queue
from regulars.kit import failpoint
from regulars.kit.releases import MIGRATIONS
from regulars.texts import stops
from regulars.texts.providers.base import DIAL_WITHIN_S

TEXT = {"do": "send_text", "text": "Merci"}
VERSIONS = "SELECT id, xmin::text, due_at FROM journey_runs WHERE organization_id = %s ORDER BY id"
LOCK_OF_A_STOP = "pg_advisory_xact_lock("
# As the release before stored a pause.
PAUSED_BEFORE = (
    "DELETE FROM stopped_origins WHERE organization_id = %s",
    "UPDATE journeys SET state = 'paused', live_version = NULL, paused_at = now() WHERE organization_id = %s",
    "UPDATE journey_runs SET held_due_at = due_at, due_at = NULL WHERE organization_id = %s",
    "UPDATE texts SET is_paused = true, due_at = NULL, document_id = NULL WHERE organization_id = %s",
)


@pytest.fixture
def journey(desk):
    """A journey that a customer has entered; the run is due."""
    journey = desk.journey(TEXT)
    enter(desk)
    return journey


def enter(desk):
    customer = desk.customer()
    desk.opt_in()
    desk.sale(customer)
    desk.one_pass(desk.outbox)


async def press(desk, journey):
    async with desk.database.transaction() as tx:
        await manage.pause(tx, desk.organization_id, journey)


def pause(desk, journey):
    desk.runner.run(press(desk, journey))


def test_a_pause_waits_for_the_runs_that_advance_and_their_texts_stay(desk, journey):
    async def scenario():
        async with desk.database.transaction() as tx:
            rows = await desk.runs_queue.take(tx, desk.organization_id, limit=10)
            pressing = asyncio.create_task(press(desk, journey))
            await until_locked(desk.database, LOCK_OF_A_STOP)
            await desk.runs_queue.act(tx, desk.organization_id, rows)
        await pressing

    desk.runner.run(scenario())
    desk.work()
    assert (desk.sent, desk.texts()) == ([], [("queued", None)])
    desk.activate(journey)
    desk.work()
    assert (len(desk.sent), desk.outcomes(journey)) == (1, ["completed"])


@pytest.mark.parametrize("is_late", [False, True])
def test_a_pause_waits_for_the_claim_and_a_text_that_is_not_dialled_in_time_stays(desk, journey, is_late):
    desk.one_pass(desk.runs_queue)
    texts, organization_id = desk.texts_queue, desk.organization_id

    async def scenario():
        async with desk.database.transaction() as tx:
            until = tx.now + timedelta(seconds=15)
            [claim] = await texts.claim(tx, organization_id, limit=1, lowest=2, owner=texts.owner, until=until)
            pressing = asyncio.create_task(press(desk, journey))
            await until_locked(desk.database, LOCK_OF_A_STOP)
        await pressing
        if is_late:
            failpoint.arm("text.claimed", "sleep", seconds=DIAL_WITHIN_S + 0.1)
        outcome = await texts.act(organization_id, claim)
        async with desk.database.transaction() as tx:
            await texts.complete(tx, organization_id, [(claim, outcome)])

    desk.runner.run(scenario())
    desk.alter(MAKE_DUE)
    desk.work()
    assert desk.texts() == [("queued" if is_late else "sent", None)]
    desk.activate(journey)
    desk.work()
    assert (len(desk.sent), desk.outcomes(journey)) == (1, ["completed"])


def test_runs_of_a_paused_journey_are_set_aside_once_and_others_advance_from_behind_them(desk, monkeypatch):
    for module in (lifecycle, queue, stops):
        monkeypatch.setattr(module, "SET_ASIDE_MAX", 2)
    desk.runs_queue.batch_rows = 1
    journey = desk.journey(TEXT, reentry={"policy": "always"})
    for number in range(5):
        desk.sale(desk.customer(f"C{number}"))
    desk.one_pass(desk.outbox)
    before = desk.sql(VERSIONS)
    pause(desk, journey)
    # A pause writes none of what waits.
    assert desk.sql(VERSIONS) == before
    other = desk.journey(TEXT, trigger="return")
    desk.sale(desk.customer("C0"), kind="RETURN")
    desk.one_pass(desk.outbox)
    desk.one_pass(desk.runs_queue)
    assert [run.waits_for for run in desk.runs(other)] == ["text"]
    assert [due_at is None for *_, due_at in desk.sql(VERSIONS)[:5]] == [True, True, False, False, False]
    for _ in range(2):
        desk.one_pass(desk.runs_queue)
    set_aside = desk.sql(VERSIONS)[:5]
    assert [due_at for *_, due_at in set_aside] == [None] * 5
    desk.work()
    assert desk.sql(VERSIONS)[:5] == set_aside
    desk.activate(journey)
    desk.one_pass(desk.resumed)
    assert [due_at is None for *_, due_at in desk.sql(VERSIONS)[:5]] == [False, False, True, True, True]
    desk.work()
    assert desk.outcomes(journey) == ["completed"] * 5


def test_a_purchase_during_the_pause_counts_when_the_journey_goes_on(desk):
    ways = {"then": [{"do": "exit", "id": "bought"}], "else": [{"do": "exit", "id": "waited"}]}
    journey = desk.journey({"do": "wait_for_purchase", "days": 7, **ways}, reentry={"policy": "never"})
    customer = desk.customer()
    desk.sell(customer)
    pause(desk, journey)
    desk.sell(customer)
    [run] = desk.runs(journey)
    assert (run.waits_for, run.due_at) == ("purchase", None)
    desk.activate(journey)
    desk.work()
    assert [run.step for run in desk.runs(journey)] == ["bought"]


def test_a_resume_waits_for_the_rows_that_are_being_set_aside_and_finds_them(desk, journey):
    pause(desk, journey)

    async def resume():
        async with desk.database.transaction() as tx:
            await manage.activate(tx, desk.organization_id, journey)

    async def scenario():
        async with desk.database.transaction() as tx:
            assert await desk.runs_queue.take(tx, desk.organization_id, limit=10) == []
            pressing = asyncio.create_task(resume())
            await until_locked(desk.database, "INSERT INTO stopped_origins")
        await pressing

    desk.runner.run(scenario())
    assert [due_at for *_, due_at in desk.sql(VERSIONS)] == [None]
    desk.work()
    assert (len(desk.sent), desk.outcomes(journey)) == (1, ["completed"])


def test_a_journey_that_was_paused_before_the_upgrade_goes_on(desk, journey):
    desk.one_pass(desk.runs_queue)
    for statement in PAUSED_BEFORE:
        desk.alter(statement)
    migration = (MIGRATIONS / "0161_rows_set_aside.sql").read_text()
    for statement in migration[migration.index("INSERT INTO") :].split(";")[:2]:
        desk.do(lambda tx, it=statement: tx.execute(it))
    desk.work()
    assert (desk.sent, desk.texts()) == ([], [("queued", None)])
    desk.activate(journey)
    desk.work()
    assert (len(desk.sent), desk.outcomes(journey)) == (1, ["completed"])
