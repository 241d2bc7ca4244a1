"""What the worker does when a backtest was asked for: it plays it, and tells how far it is."""

import asyncio
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from regulars.journeys.backtest.asked import queries
from regulars.journeys.backtest.asked.ask import QUEUE
from regulars.journeys.backtest.asked.model import AskedRow
from regulars.journeys.backtest.model import Report
from regulars.journeys.backtest.run import play_definition
from regulars.journeys.definition import read_definition
from regulars.journeys.errors import JourneyError
from regulars.kit.db import Database
from regulars.messaging.settings.store import load_texting
from regulars.work.queue import Due, Queue, Schedule, log_failure

TELL_EVERY_S: Final = 1.0
# A worker that has told nothing for this long is gone.
SILENT_MAX: Final = timedelta(minutes=2)
PLAYED_S_MAX: Final = 300.0


class BacktestQueue(Queue):
    name = QUEUE
    due = Due(table="journey_backtests")
    schedule = Schedule(waits_s=(5,))
    turns_at_once = 1

    async def take_turn(self, database: Database, organization_id: UUID) -> bool:
        async with database.transaction() as tx:
            asked = await queries.take_due(tx, organization_id, until=tx.now + SILENT_MAX)
        if asked is None:
            return False
        progress = [0]
        telling = asyncio.create_task(_tell(database, organization_id, asked, progress))
        try:
            async with asyncio.timeout(PLAYED_S_MAX):
                report = await _play(database, organization_id, asked, progress)
        except TimeoutError:
            await _finish(
                database, organization_id, asked, failure="It took more than five minutes; ask for fewer days."
            )
        except JourneyError as error:
            await _finish(database, organization_id, asked, failure=str(error))
        except Exception as error:  # noqa: BLE001  # it is tried again, and given up after the schedule
            async with database.transaction() as tx:
                due_at = self.schedule.due_at(tx.now, attempts=asked.attempts)
                log_failure(self.name, organization_id, error, attempts=asked.attempts, is_parked=due_at is None)
                failure = "It failed; the log of the worker says why." if due_at is None else None
                await queries.finish(tx, organization_id, asked, report=None, failure=failure, due_at=due_at)
        else:
            content = msgspec.json.encode(report.as_data()).decode()
            await _finish(database, organization_id, asked, report=content)
        finally:
            telling.cancel()
        return True


async def _play(database: Database, organization_id: UUID, asked: AskedRow, progress: list[int]) -> Report:
    async with database.transaction() as tx:
        texting = await load_texting(tx, organization_id)
        if texting is None:
            raise JourneyError("The organization is gone.")
        return await play_definition(
            tx,
            organization_id,
            asked.journey_id,
            read_definition(asked.definition.encode()),
            version=asked.version or 0,
            texting=texting,
            days=asked.days,
            tell=lambda facts: progress.__setitem__(0, facts),
        )


async def _finish(
    database: Database, organization_id: UUID, asked: AskedRow, *, report: str | None = None, failure: str | None = None
) -> None:
    async with database.transaction() as tx:
        await queries.finish(tx, organization_id, asked, report=report, failure=failure, due_at=None)


async def _tell(database: Database, organization_id: UUID, asked: AskedRow, progress: list[int]) -> None:
    while True:
        await asyncio.sleep(TELL_EVERY_S)
        async with database.transaction() as tx:
            await queries.tell_progress(tx, organization_id, asked, facts=progress[0], until=tx.now + SILENT_MAX)
