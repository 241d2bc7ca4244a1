"""What the worker does when the demo was asked for: it fills the organization, and tells how far it is."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.consent.figures import recount
from regulars.demo.fill import fill
from regulars.demo.load import Story
from regulars.demo.people import count_customers
from regulars.demo.runs import queries
from regulars.demo.runs.request import QUEUE
from regulars.kit.db import Database
from regulars.kit.vault import AnyVault
from regulars.organizations.manage import find_particulars
from regulars.work.queue import Due, Queue, Schedule, log_failure

SEED: Final = 1
TELL_EVERY_S: Final = 1.0
# A worker that has told nothing for this long is gone, and another begins where the use cases find it.
SILENT_MAX: Final = timedelta(minutes=2)


class DemoQueue(Queue):
    name = QUEUE
    due = Due(table="demo_runs")
    schedule = Schedule(waits_s=(10, 60))
    passes_at_once = 1

    def __init__(self, vault: AnyVault | None = None) -> None:
        self._vault = vault

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        async with database.transaction() as tx:
            run = await queries.take_due_run(tx, organization_id, until=tx.now + SILENT_MAX)
            if run is None:
                return False
            secret = (await find_particulars(tx.connection, organization_id)).secret
        done: Counter[str] = Counter()
        telling = asyncio.create_task(_tell(database, organization_id, done))
        story = Story(
            seed=SEED, sales=run.tickets, customers=count_customers(run.tickets), last_day=datetime.now(UTC).date()
        )
        try:
            await fill(
                database,
                organization_id,
                story,
                secret=secret,
                vault=self._vault,
                progress=lambda part, count: done.update({part: count}),
            )
        except Exception as error:  # noqa: BLE001  # it is tried again, and given up after the schedule
            async with database.transaction() as tx:
                due_at = self.schedule.due_at(tx.now, attempts=run.attempts)
                log_failure(self.name, organization_id, error, attempts=run.attempts, is_parked=due_at is None)
                await queries.fail_run(tx, organization_id, due_at=due_at)
            return False
        finally:
            telling.cancel()
        async with database.transaction() as tx:
            # A page may have asked for a count in the middle of the load.
            await recount(tx, organization_id)
            await queries.finish_run(tx, organization_id, done)
        return False


async def _tell(database: Database, organization_id: UUID, done: Counter[str]) -> None:
    while True:
        await asyncio.sleep(TELL_EVERY_S)
        async with database.transaction() as tx:
            await queries.tell_progress(tx, organization_id, done, until=tx.now + SILENT_MAX)
