from datetime import timedelta

import pytest

from regulars.demo.load import DemoPlan
from regulars.demo.people import count_customers
from regulars.demo.requests import SILENT_MAX, DemoQueue, begin_run, find_run, request_demo
from regulars.organizations.manage import create_organization

pytestmark = pytest.mark.anyio
TICKETS = 300


@pytest.fixture
async def shop(database):
    async with database.connection() as connection:
        return await create_organization(connection, "Demo")


async def test_a_worker_that_died_is_followed_by_another_and_nothing_is_there_twice(database, shop):
    async with database.transaction() as tx:
        await request_demo(tx, shop.id, tickets=TICKETS)
    await DemoQueue().run_pass(database, shop.id)
    async with database.transaction() as tx:
        # As after a death just before the end: everything is loaded, and the end is not recorded.
        await tx.execute("UPDATE demo_runs SET finished_at = NULL, due_at = %s", (tx.now - SILENT_MAX,))
    await DemoQueue().run_pass(database, shop.id)
    async with database.transaction() as tx:
        assert (await find_run(tx, shop.id)).finished_at is not None
        of_plan = (
            "SELECT count(*) FROM sales_events WHERE organization_id = %s AND external_id !~ '^(AFTER-TEXT|LOYALTY)-'"
        )
        assert await tx.fetch(of_plan, (shop.id,)) == [(TICKETS,)]


async def test_one_that_is_running_elsewhere_is_left_alone(database, shop):
    async with database.transaction() as tx:
        await request_demo(tx, shop.id, tickets=TICKETS)
        await tx.execute("UPDATE demo_runs SET due_at = %s", (tx.now + timedelta(minutes=1),))
    await DemoQueue().run_pass(database, shop.id)
    async with database.transaction() as tx:
        assert (await find_run(tx, shop.id)).attempts == 0
        # The command leaves it alone too, until it has ended or its process has died.
        plan = DemoPlan(seed=2, sales=7, customers=count_customers(7), last_day=tx.now.date())
        assert not await begin_run(tx, shop.id, plan)
        await tx.execute("UPDATE demo_runs SET due_at = %s", (tx.now,))
        assert await begin_run(tx, shop.id, plan)
        assert (await find_run(tx, shop.id)).plan == plan
        assert not await begin_run(tx, shop.id, plan)


async def test_what_keeps_failing_is_given_up_and_says_so(database, shop):
    async with database.transaction() as tx:
        await request_demo(tx, shop.id, tickets=TICKETS)
        await tx.execute("ALTER TABLE stores RENAME TO elsewhere")
    for _ in range(3):
        async with database.transaction() as tx:
            await tx.execute("UPDATE demo_runs SET due_at = %s", (tx.now,))
        await DemoQueue().run_pass(database, shop.id)
    async with database.transaction() as tx:
        assert (await find_run(tx, shop.id)).failed_at is not None
