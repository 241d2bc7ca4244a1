"""Backtests requested on a page: the worker runs them, because they may take longer than a page may."""

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.journeys.backtest.report import Report
from regulars.journeys.backtest.run import play_definition
from regulars.journeys.definition import Definition, read_definition, write_definition
from regulars.journeys.errors import JourneyError
from regulars.kit.db import Database, Tx
from regulars.messaging.settings.store import load_texting
from regulars.work.queue import Due, Queue, Schedule, log_failure


class AskedRow(NamedTuple):
    journey_id: UUID
    # A version, or the draft at a revision.
    version: int | None
    revision: int | None
    definition: str
    days: int
    asked_at: datetime
    asked_by: str
    facts: int
    report: Any
    failure: str | None
    ended_at: datetime | None
    attempts: int


QUEUE = "journey_backtests"


async def ask_for_backtest(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    definition: Definition,
    *,
    version: int | None,
    revision: int | None,
    days: int,
    by: str,
) -> None:
    """Of a version, or of the draft at a revision; the worker plays it."""
    text = write_definition(definition).decode()
    asked = AskedRow(journey_id, version, revision, text, days, tx.now, by, 0, None, None, None, 0)
    await _upsert(tx, organization_id, asked)
    tx.touched.add((QUEUE, organization_id))


async def _upsert(tx: Tx, organization_id: UUID, asked: AskedRow) -> None:
    """The new question takes the place of the old one, whose answer is forgotten."""
    await tx.execute(
        """
        INSERT INTO journey_backtests
            (organization_id, journey_id, version, revision, definition, days, asked_at, asked_by, due_at)
        VALUES (%(organization_id)s, %(journey_id)s, %(version)s, %(revision)s, %(definition)s::json, %(days)s, %(now)s,
                %(by)s, %(now)s)
        ON CONFLICT (organization_id, journey_id)
        DO UPDATE SET version = EXCLUDED.version, revision = EXCLUDED.revision, definition = EXCLUDED.definition,
                      days = EXCLUDED.days, asked_at = EXCLUDED.asked_at, asked_by = EXCLUDED.asked_by, facts = 0,
                      report = NULL, failure = NULL, ended_at = NULL, attempts = 0, due_at = EXCLUDED.due_at
        """,
        {
            "organization_id": organization_id,
            "journey_id": asked.journey_id,
            "version": asked.version,
            "revision": asked.revision,
            "definition": asked.definition,
            "days": asked.days,
            "by": asked.asked_by,
            "now": tx.now,
        },
    )


async def find_backtest(tx: Tx, organization_id: UUID, journey_id: UUID) -> AskedRow | None:
    rows = await tx.fetch(
        """
        SELECT journey_id, version, revision, definition::text, days, asked_at, asked_by, facts, report, failure,
               ended_at, attempts
        FROM journey_backtests
        WHERE organization_id = %s AND journey_id = %s
        """,
        (organization_id, journey_id),
    )
    return AskedRow(*rows[0]) if rows else None


async def _take_due(tx: Tx, organization_id: UUID, *, until: datetime) -> AskedRow | None:
    """One, for as long as progress is told: a worker that dies lets it fall due again."""
    rows = await tx.fetch(
        """
        UPDATE journey_backtests SET due_at = %(until)s, attempts = attempts + 1
        WHERE organization_id = %(organization_id)s AND journey_id = ANY (ARRAY(
            SELECT journey_id FROM journey_backtests
            WHERE organization_id = %(organization_id)s AND due_at <= %(now)s
            ORDER BY due_at
            LIMIT 1
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING journey_id, version, revision, definition::text, days, asked_at, asked_by, facts, report, failure,
                  ended_at, attempts
        """,
        {"organization_id": organization_id, "until": until, "now": tx.now},
    )
    return AskedRow(*rows[0]) if rows else None


async def _save_progress(tx: Tx, organization_id: UUID, asked: AskedRow, *, facts: int, until: datetime) -> None:
    await tx.execute(
        """
        UPDATE journey_backtests SET facts = %s, due_at = %s
        WHERE organization_id = %s AND journey_id = %s AND asked_at = %s AND ended_at IS NULL
        """,
        (facts, until, organization_id, asked.journey_id, asked.asked_at),
    )


async def _update_finished(
    tx: Tx, organization_id: UUID, asked: AskedRow, *, report: str | None, failure: str | None, due_at: datetime | None
) -> None:
    """Only the question that was played: a newer one waits for its own answer. With a due time it is tried again."""
    await tx.execute(
        """
        UPDATE journey_backtests
        SET report = %(report)s::json, failure = %(failure)s, due_at = %(due_at)s,
            ended_at = CASE WHEN %(due_at)s::timestamptz IS NULL THEN %(now)s::timestamptz END
        WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s AND asked_at = %(asked_at)s
        """,
        {
            "organization_id": organization_id,
            "journey_id": asked.journey_id,
            "asked_at": asked.asked_at,
            "report": report,
            "failure": failure,
            "due_at": due_at,
            "now": tx.now,
        },
    )


TELL_EVERY_S: Final = 1.0
# A worker that has told nothing for this long is gone.
SILENT_MAX: Final = timedelta(minutes=2)
PLAYED_S_MAX: Final = 300.0


class BacktestQueue(Queue):
    name = QUEUE
    due = Due(table="journey_backtests")
    schedule = Schedule(waits_s=(5,))
    passes_at_once = 1

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        async with database.transaction() as tx:
            asked = await _take_due(tx, organization_id, until=tx.now + SILENT_MAX)
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
                await _update_finished(tx, organization_id, asked, report=None, failure=failure, due_at=due_at)
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
        await _update_finished(tx, organization_id, asked, report=report, failure=failure, due_at=None)


async def _tell(database: Database, organization_id: UUID, asked: AskedRow, progress: list[int]) -> None:
    while True:
        await asyncio.sleep(TELL_EVERY_S)
        async with database.transaction() as tx:
            await _save_progress(tx, organization_id, asked, facts=progress[0], until=tx.now + SILENT_MAX)
