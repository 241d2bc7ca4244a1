"""Two people press a button in the same second, and the worker feeds meanwhile."""

import asyncio
from datetime import timedelta

import pytest
from tests.campaigns.desk import REACHABLE
from tests.segments.test_members import answering
from tests.support.waiting import until_locked

from regulars.campaigns import manage
from regulars.campaigns.queries import lock_campaign
from regulars.campaigns.run.start import StartQueue
from regulars.kit.db import Database
from regulars.kit.ids import SEGMENT
from regulars.kit.refusals import NotPossible
from regulars.segments.definition import read_definition
from regulars.segments.saved.manage import update_segment

IMPATIENT_MS = 50


def press_at_once(desk, *acts):
    async def press(act):
        async with desk.database.transaction() as tx:
            return await act(tx)

    async def run():
        return await asyncio.gather(*(press(act) for act in acts), return_exceptions=True)

    return desk.runner.run(run())


def test_of_two_people_who_send_in_the_same_second_one_wins(desk):
    desk.crowd(2)
    draft = desk.draft()

    def send(by):
        return lambda tx: manage.schedule(tx, desk.organization_id, draft, confirmed_recipients=2, by=by, is_now=True)

    found = press_at_once(desk, send("ann@shop.example"), send("bob@shop.example"))
    refused = [it for it in found if isinstance(it, NotPossible)]
    assert [str(it) for it in refused] == ["This campaign is scheduled already."]
    [row] = [it for it in found if not isinstance(it, Exception)]
    desk.drain()
    desk.start()
    desk.work()
    assert desk.outcomes(draft) == {"sent": 2}
    assert len(desk.gateway.sent) == 2
    assert desk.load(draft).row.confirmed_by == row.confirmed_by


@pytest.mark.parametrize("stop", [manage.pause, manage.cancel])
def test_a_stop_waits_for_a_worker_that_handles_a_batch_for_long(desk, stop):
    desk.crowd(2)
    campaign = desk.send()

    impatient = Database(desk.database.url, pool_max=1, lock_timeout_ms=IMPATIENT_MS)

    async def press():
        async with impatient.transaction() as tx:
            await stop(tx, desk.organization_id, campaign, by="ann@shop.example")

    async def run():
        await impatient.open()
        async with desk.database.transaction() as tx:
            await lock_campaign(tx, desk.organization_id, campaign)
            pressing = asyncio.create_task(press())
            await until_locked(desk.database)
            # Longer than others wait for a row.
            await asyncio.sleep(4 * IMPATIENT_MS / 1000)
        await pressing
        await impatient.close()

    desk.runner.run(run())
    assert desk.load(campaign).row.state == ("paused" if stop is manage.pause else "cancelled")


@pytest.mark.parametrize("stop", [manage.pause, manage.cancel])
def test_a_stop_while_recipients_are_fed_leaves_nothing_queued(desk, stop):
    desk.crowd(20)
    campaign = desk.send()

    async def run():
        async def press():
            async with desk.database.transaction() as tx:
                await stop(tx, desk.organization_id, campaign, by="ann@shop.example")

        feeding = (desk.campaigns.run_pass(desk.database, desk.organization_id) for _ in range(3))
        await asyncio.gather(*feeding, press())

    desk.runner.run(run())
    desk.work()
    assert desk.gateway.sent == []
    # A stop that comes before the audience is drawn leaves no recipients.
    assert set(desk.outcomes(campaign)) <= {"waiting" if stop is manage.pause else "skipped"}


def test_an_audience_that_was_counted_before_a_change_of_its_segment_is_counted_again(desk):
    """The worker claimed the campaign twice: before and after a pause in which the segment was changed."""
    desk.crowd(2)
    tier = desk.segment(REACHABLE, name="Tier")
    draft = desk.draft(segment=tier)
    desk.act(manage.schedule, draft, confirmed_recipients=2, is_now=True)
    desk.drain()
    changed = read_definition(
        b'{"name": "Tier", "match": {"type": "all", "of": [{"type": "consent", "state": "may_be_texted"}]}}'
    )

    async def claim(queue):
        async with desk.database.transaction() as tx:
            until = tx.now + timedelta(minutes=1)
            [claimed] = await queue.claim(tx, desk.organization_id, limit=1, lowest=0, owner=queue.owner, until=until)
            return claimed

    async def run():
        async with answering(desk, desk.path) as analysis:
            queue = StartQueue(analysis)
            first = await claim(queue)
            counted = await queue.act(desk.organization_id, first)
            async with desk.database.transaction() as tx:
                await manage.pause(tx, desk.organization_id, draft, by="ann@shop.example")
                await update_segment(tx, desk.organization_id, SEGMENT.decode(tier), changed)
                await manage.resume(tx, desk.organization_id, draft, by="ann@shop.example")
            await claim(queue)
            async with desk.database.transaction() as tx:
                await queue.complete(tx, desk.organization_id, [(first, counted)])

    desk.runner.run(run())
    assert desk.load(draft).row.frozen_at is None
    desk.start()
    assert desk.load(draft).row.frozen_at is not None
