from datetime import timedelta

import anyio
import pytest
from psycopg.sql import SQL, Identifier

from regulars.demo import fill as demo_fill
from regulars.demo.campaigns import BUYERS_MAX
from regulars.demo.chain import COUNTRIES
from regulars.demo.requests import SILENT_MAX, DemoQueue, find_run, request_demo
from regulars.demo.texts import NOTICES
from regulars.journeys.runs.queue import RunQueue
from regulars.messaging.providers.simulator import Simulator
from regulars.messaging.send import TextQueue
from regulars.organizations.manage import create_organization

pytestmark = pytest.mark.anyio
TICKETS = 300
FIRST_WORDS = {"fr": "Merci", "de": "Danke", "en": "Thank you"}


@pytest.fixture
async def shop(database):
    async with database.connection() as connection:
        return await create_organization(connection, "Demo")


async def work_beside(database, organization_id) -> None:
    """The worker's own queues."""
    queues = (RunQueue(), TextQueue({"simulator": Simulator(database)}))
    while True:
        for queue in queues:
            await queue.run_pass(database, organization_id)
        await anyio.sleep(0.01)


async def test_the_worker_reports_its_progress_and_leaves_something_to_show_on_every_page(database, shop, monkeypatch):
    # The worker beside it takes all runs and texts before the demo does.
    monkeypatch.setattr(demo_fill, "PASSES_MAX", 0)
    tickets = 12_000
    async with database.transaction() as tx:
        assert await request_demo(tx, shop.id, tickets=tickets)
        assert not await request_demo(tx, shop.id, tickets=tickets)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work_beside, database, shop.id)
        await DemoQueue().run_pass(database, shop.id)
        tasks.cancel_scope.cancel()
    async with database.transaction() as tx:
        run = await find_run(tx, shop.id)
    assert run.finished_at is not None
    assert run.progress["tickets"] == tickets
    assert set(run.progress) >= {"stores", "customers", "consents", "tickets"}
    assert not await DemoQueue().run_pass(database, shop.id)

    async def read(query):
        async with database.transaction() as tx:
            return await tx.fetch(query, {"shop": shop.id})

    newest = await read("SELECT first_name FROM profiles WHERE organization_id = %(shop)s ORDER BY id DESC LIMIT 50")
    assert all(first_name for (first_name,) in newest)
    for table, at_least in (("segments", 5), ("api_keys", 2), ("request_log", 40), ("ticket_collisions", 3)):
        found = await read(SQL("SELECT count(*) FROM {} WHERE organization_id = %(shop)s").format(Identifier(table)))
        assert found[0][0] >= at_least, table
    refused = await read("SELECT DISTINCT code FROM request_log WHERE organization_id = %(shop)s AND status >= 400")
    assert set(refused) == {("STORE_NOT_FOUND",), ("VALIDATION_ERROR",)}
    texts = await read(
        "SELECT t.state, t.body, p.attributes ->> 'country', t.origin_kind FROM texts t"
        " JOIN profiles p ON p.organization_id = t.organization_id AND p.id = t.profile_id"
        " WHERE t.organization_id = %(shop)s AND t.state IN ('sent', 'delivered', 'failed')"
    )
    assert {"sent", "delivered", "failed"} <= {state for state, *_ in texts}
    assert await read("SELECT FROM replies WHERE organization_id = %(shop)s AND body = 'STOP'")
    for _, body, country, origin in texts:
        language = COUNTRIES[country].language
        assert origin == "campaign" or FIRST_WORDS[language] in body, country
        assert NOTICES[country].words in body, country

    campaigns = await read(
        "SELECT c.state, c.name, (SELECT sum(recipients) FROM campaign_totals t WHERE t.organization_id = %(shop)s"
        " AND t.campaign_id = c.id AND t.arm >= 0), c.recipients FROM campaigns c WHERE c.organization_id = %(shop)s"
    )
    assert sorted(state for state, *_ in campaigns) == ["draft", "ended", "ended", "ended", "sending"]
    assert all(counted == recipients and counted > 0 for state, _, counted, recipients in campaigns if state != "draft")
    bought = await read(
        "SELECT count(DISTINCT e.id) FROM sales_events AS e JOIN texts AS t ON t.organization_id = %(shop)s"
        " AND t.profile_id = e.profile_id AND t.origin_kind = 'campaign' AND t.claimed_at < e.occurred_at"
        " WHERE e.organization_id = %(shop)s AND e.external_id LIKE 'AFTER-TEXT-%%'"
    )
    assert bought == [(BUYERS_MAX,)]
    [(texted, fed, clicks)] = await read(
        "SELECT count(*) FILTER (WHERE r.arm > 0), count(*) FILTER (WHERE r.fed_at < now() - interval '40 days'),"
        " (SELECT sum(clicks) FROM click_totals AS k WHERE k.organization_id = %(shop)s AND k.origin_id = c.id)"
        " FROM campaigns AS c JOIN campaign_recipients AS r ON r.organization_id = %(shop)s AND r.campaign_id = c.id"
        " WHERE c.organization_id = %(shop)s AND c.name LIKE 'Winter%%' GROUP BY c.id"
    )
    assert texted == fed > 0
    assert clicks > 0
    winter = await read(
        "SELECT r.arm > 0, count(*) FROM sales_events AS e JOIN campaign_recipients AS r"
        " ON r.organization_id = %(shop)s AND r.profile_id = e.profile_id JOIN campaigns AS c"
        " ON c.organization_id = %(shop)s AND c.id = r.campaign_id AND c.name LIKE 'Winter%%'"
        " WHERE e.organization_id = %(shop)s AND e.external_id LIKE 'WINTER-%%' GROUP BY 1"
    )
    assert dict(winter)[True] > dict(winter)[False] > 0
    outcomes = await read("SELECT DISTINCT outcome FROM campaign_totals WHERE organization_id = %(shop)s")
    assert {"sent", "delivered", "failed", "held_out", "waiting"} <= {outcome for (outcome,) in outcomes}


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
            "SELECT count(*) FROM sales_events WHERE organization_id = %s AND external_id !~ '^(AFTER-TEXT|WINTER)-'"
        )
        assert await tx.fetch(of_plan, (shop.id,)) == [(TICKETS,)]


async def test_one_that_is_running_elsewhere_is_left_alone(database, shop):
    async with database.transaction() as tx:
        await request_demo(tx, shop.id, tickets=TICKETS)
        await tx.execute("UPDATE demo_runs SET due_at = %s", (tx.now + timedelta(minutes=1),))
    await DemoQueue().run_pass(database, shop.id)
    async with database.transaction() as tx:
        assert (await find_run(tx, shop.id)).attempts == 0


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
