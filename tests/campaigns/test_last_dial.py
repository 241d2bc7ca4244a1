"""After the response to a pause or a cancellation the worker claims no text of the campaign, and dials the last one
within two seconds: a real worker process, and a Twilio on loopback whose clock decides."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from tests.campaigns.desk import REACHABLE, definition
from tests.messaging.fake_twilio import FakeTwilio, fake_twilio
from tests.messaging.fire import Worker, open_twilio_shop
from tests.support.tenant import new_tenant
from tests.support.waiting import until

from regulars.campaigns import manage
from regulars.campaigns.run.start import start_frozen
from regulars.kit.db import Database, Tx
from regulars.kit.ids import SEGMENT
from regulars.segments.definition import read_definition
from regulars.segments.saved.manage import create_segment

NUMBERS = [f"+336{number:08d}" for number in range(10_000_000, 10_000_600)]
LAST_DIAL_S = 2.0
SENT_BEFORE_A_STOP = 50


@pytest.mark.timeout(300)
def test_after_a_pause_and_a_cancellation_no_text_is_claimed_and_the_last_dial_is_soon(database_url):
    asyncio.run(send_and_stop(database_url))


async def send_and_stop(database_url: str) -> None:
    tenant = new_tenant(database_url)
    database = Database(database_url, pool_max=4)
    await database.open()
    arrivals: list[float] = []
    try:
        async with fake_twilio() as fake:
            await open_twilio_shop(database, tenant, NUMBERS)
            fake.respond = lambda _form: arrivals.append(time.time())
            async with database.transaction() as tx:
                campaign_id = await send_campaign(tx, tenant.organization_id)
            worker = Worker(database_url, fake.url, fake.url)
            worker.start()
            try:
                await stop_and_check(database, tenant.organization_id, campaign_id, arrivals, fake, stop=manage.pause)
                async with database.transaction() as tx:
                    await manage.resume(tx, tenant.organization_id, campaign_id, by="ann")
                await stop_and_check(database, tenant.organization_id, campaign_id, arrivals, fake, stop=manage.cancel)
            finally:
                worker.end()
            assert len(fake.posts) == len({form["To"] for form in fake.posts}) < len(NUMBERS)
    finally:
        await database.close()


async def send_campaign(tx: Tx, organization_id: UUID) -> UUID:
    given = {"name": "Everybody", "match": {"type": "all", "of": [REACHABLE]}}
    segment = await create_segment(tx, organization_id, read_definition(json.dumps(given).encode()))
    campaign = await manage.create_campaign(tx, organization_id, definition(SEGMENT.encode(segment.row.id)))
    await manage.schedule(
        tx, organization_id, campaign.row.id, confirmed_recipients=len(NUMBERS), by="ann", is_now=True
    )
    found = await tx.fetch("SELECT id FROM profiles WHERE organization_id = %s", (organization_id,))
    await start_frozen(tx, organization_id, campaign.row.id, [row[0] for row in found])
    return campaign.row.id


async def stop_and_check(
    database: Database,
    organization_id: UUID,
    campaign_id: UUID,
    arrivals: list[float],
    fake: FakeTwilio,
    *,
    stop: Callable[..., Any],
) -> None:
    """In the middle of the sending: the provider has not responded yet to the texts that the stop meets."""

    async def count(condition: str, *values: Any) -> int:
        query = f"SELECT count(*) FROM texts WHERE organization_id = %s AND origin_id = %s AND ({condition})"  # noqa: S608  # the conditions below
        async with database.reading() as tx:
            [(found,)] = await tx.fetch(query, (organization_id, campaign_id, *values))  # type: ignore[arg-type]  # as above
        return int(found)

    async def is_none_on_its_way() -> bool:
        return await count("state = 'sending'") == 0

    fake.may_respond.clear()
    enough = len(arrivals) + SENT_BEFORE_A_STOP
    await until(lambda: len(arrivals) >= enough)
    async with database.transaction() as tx:
        await stop(tx, organization_id, campaign_id, by="ann")
    answered = time.time()
    assert await count("state = 'sending'") > 0, "The stop met no text on its way."
    fake.may_respond.set()
    await until(is_none_on_its_way)
    # A worker that would claim more has time to.
    await asyncio.sleep(1.0)
    assert await count("claimed_at > to_timestamp(%s) OR state IN ('queued', 'sending')", answered) == 0
    assert max(arrivals) - answered < LAST_DIAL_S
