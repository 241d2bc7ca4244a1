from datetime import timedelta

import pytest

from regulars.demo.runs.ask import ask_for_demo, find_run
from regulars.demo.runs.queue import SILENT_MAX, DemoQueue
from regulars.organizations.manage import create_organization

pytestmark = pytest.mark.anyio
TICKETS = 300


@pytest.fixture
async def shop(database):
    async with database.connection() as connection:
        return await create_organization(connection, "Demo")


async def test_the_worker_fills_the_organization_and_tells_how_far_it_is(database, shop):
    async with database.transaction() as tx:
        assert await ask_for_demo(tx, shop.id, tickets=TICKETS)
        assert not await ask_for_demo(tx, shop.id, tickets=TICKETS)
    await DemoQueue().take_turn(database, shop.id)
    async with database.transaction() as tx:
        run = await find_run(tx, shop.id)
        assert run.finished_at is not None
        assert run.progress["tickets"] == TICKETS
        assert set(run.progress) >= {"stores", "customers", "consents", "tickets"}
        assert await tx.fetch("SELECT count(*) FROM sales_events WHERE organization_id = %s", (shop.id,)) == [
            (TICKETS,)
        ]
    assert not await DemoQueue().take_turn(database, shop.id)


async def test_a_worker_that_died_is_followed_by_another_and_nothing_is_there_twice(database, shop):
    async with database.transaction() as tx:
        await ask_for_demo(tx, shop.id, tickets=TICKETS)
    await DemoQueue().take_turn(database, shop.id)
    async with database.transaction() as tx:
        # As after a death just before the end: all is in, and nobody said so.
        await tx.execute("UPDATE demo_runs SET finished_at = NULL, due_at = %s", (tx.now - SILENT_MAX,))
    await DemoQueue().take_turn(database, shop.id)
    async with database.transaction() as tx:
        assert (await find_run(tx, shop.id)).finished_at is not None
        assert await tx.fetch("SELECT count(*) FROM sales_events WHERE organization_id = %s", (shop.id,)) == [
            (TICKETS,)
        ]


async def test_one_that_is_running_elsewhere_is_left_alone(database, shop):
    async with database.transaction() as tx:
        await ask_for_demo(tx, shop.id, tickets=TICKETS)
        await tx.execute("UPDATE demo_runs SET due_at = %s", (tx.now + timedelta(minutes=1),))
    await DemoQueue().take_turn(database, shop.id)
    async with database.transaction() as tx:
        assert (await find_run(tx, shop.id)).attempts == 0


async def test_what_keeps_failing_is_given_up_and_says_so(database, shop):
    async with database.transaction() as tx:
        await ask_for_demo(tx, shop.id, tickets=TICKETS)
        await tx.execute("ALTER TABLE stores RENAME TO elsewhere")
    for _ in range(3):
        async with database.transaction() as tx:
            await tx.execute("UPDATE demo_runs SET due_at = %s", (tx.now,))
        await DemoQueue().take_turn(database, shop.id)
    async with database.transaction() as tx:
        assert (await find_run(tx, shop.id)).failed_at is not None
