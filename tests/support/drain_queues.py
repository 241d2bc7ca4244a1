"""Runs the queues of the worker for one organization until they are empty."""

import asyncio
from time import monotonic
from typing import Final
from uuid import UUID

from tests.support.open_database import open_database

from regulars.columns.feed.build import ColumnsBuild
from regulars.kit import vault
from regulars.kit.db import Database
from regulars.kit.public_address import PublicAddress
from regulars.kit.settings import Settings
from regulars.texts.providers.gateways import open_gateways
from regulars.work.claims import ClaimQueue
from regulars.work.facts import Listeners
from regulars.work.outbox import OutboxQueue
from regulars.work.queue import Queue
from regulars.worker import queues

# The secret key of the test servers; webhooks may go to this machine.
SETTINGS = Settings(secret_key="a key for tests, of more than 32 characters", webhook_allow=("127.0.0.0/8",))


async def drain(database: Database, organization_id: UUID, listeners: Listeners) -> int:
    """Handles the due facts of the outbox; returns how many all their listeners handled without an error."""
    before = await _ids(database, organization_id, "SELECT id FROM outbox WHERE organization_id = %s")
    queue = OutboxQueue(listeners)
    while await queue.run_pass(database, organization_id):
        pass
    left = await _ids(database, organization_id, "SELECT id FROM outbox WHERE organization_id = %s")
    failed = await _ids(database, organization_id, "SELECT id FROM outbox_retries WHERE organization_id = %s")
    return len(before - left - failed)


async def _ids(database: Database, organization_id: UUID, query: str) -> set[UUID]:
    async with database.reading() as tx:
        return {row[0] for row in await tx.fetch(query, (organization_id,))}  # type: ignore[arg-type]  # a literal above


# How long a build of columns may wait for older transactions of its PostgreSQL, such as those of autovacuum.
OLDER_TRANSACTIONS_S_MAX: Final = 30.0


async def _run_passes(queue: Queue, database: Database, organization_id: UUID) -> None:
    deadline = monotonic() + OLDER_TRANSACTIONS_S_MAX
    while await queue.run_pass(database, organization_id) or (
        isinstance(queue, ColumnsBuild)
        and monotonic() < deadline
        and await _make_waiting_build_due(database, organization_id)
    ):
        await _wait_for(queue)
    await _wait_for(queue)


async def _make_waiting_build_due(database: Database, organization_id: UUID) -> bool:
    """Makes a build due that tries again in a second, because an older transaction was open."""
    async with database.transaction() as tx:
        changed = await tx.execute(
            """
            UPDATE segment_columns SET build_at = now()
            WHERE organization_id = %s AND state = 'building' AND phase = 'waiting' AND build_at > now()
            """,
            (organization_id,),
        )
    await asyncio.sleep(0.02 if changed else 0)
    return bool(changed)


async def _wait_for(queue: Queue) -> None:
    """Waits for the calls that a pass left running."""
    if isinstance(queue, ClaimQueue):
        await ClaimQueue.finish(queue)


def drain_queues(database_url: str, organization_id: UUID, settings: Settings = SETTINGS) -> None:
    """Runs passes of every queue of the worker until no queue has due rows."""

    async def work(database: Database) -> None:
        gateways = open_gateways(
            database, vault=vault.of(settings), twilio_url=settings.twilio_url, address=PublicAddress()
        )
        opened = queues(settings, gateways)
        try:
            for queue in opened:
                await _run_passes(queue, database, organization_id)
            for queue in opened:
                await queue.finish()
        finally:
            await gateways.twilio.close()

    with open_database(database_url) as lent:
        lent.run(work)
