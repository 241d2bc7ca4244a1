"""Backtests of journeys that users request on a page, and that the worker runs, because they may take minutes."""

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.journeys.backtest.report import BacktestReport
from regulars.journeys.backtest.run import backtest_definition
from regulars.journeys.definition import Definition, read_definition, write_definition
from regulars.kit.columns import fill, names_of
from regulars.kit.db import Database, Tx
from regulars.kit.refusals import Refused
from regulars.texts.settings.store import load_texting
from regulars.work.queue import Due, Queue, Schedule, WaitLimit, log_failure

QUEUE: Final = "journey_backtests"
PROGRESS_INTERVAL_S: Final = 1.0
# A worker that reports no progress for this long is considered dead, and the backtest becomes due again.
SILENT_MAX: Final = timedelta(minutes=2)
BACKTEST_S_MAX: Final = 300.0


class BacktestRow(NamedTuple):
    """A request of a user (`asked_at`, `asked_by`), and its report or failure once it has ended."""

    journey_id: UUID
    # Either the version, or the revision of the draft, is set.
    version: int | None
    revision: int | None
    definition: str
    days: int
    asked_at: datetime
    asked_by: str
    # How many sales or consents have been simulated.
    facts: int
    report: Any
    failure: str | None
    ended_at: datetime | None
    attempts: int


_COLUMNS: Final = names_of(BacktestRow).replace("definition", "definition::text")


async def request_backtest(
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
    """Request a backtest of a version, or of a revision of the draft. It replaces the journey's previous request."""
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
            "journey_id": journey_id,
            "version": version,
            "revision": revision,
            "definition": write_definition(definition).decode(),
            "days": days,
            "by": by,
            "now": tx.now,
        },
    )
    tx.queues_to_wake.add((QUEUE, organization_id))


async def find_backtest(tx: Tx, organization_id: UUID, journey_id: UUID) -> BacktestRow | None:
    return await tx.fetch_first(
        BacktestRow,
        fill(
            "SELECT {columns} FROM journey_backtests WHERE organization_id = %s AND journey_id = %s", columns=_COLUMNS
        ),
        (organization_id, journey_id),
    )


async def _take_due(tx: Tx, organization_id: UUID, *, until: datetime) -> BacktestRow | None:
    """Claim a request until a deadline, which `_report_progress` extends; after a crash the request is due again."""
    return await tx.fetch_first(
        BacktestRow,
        fill(
            """
            UPDATE journey_backtests SET due_at = %(until)s, attempts = attempts + 1
            WHERE organization_id = %(organization_id)s AND journey_id = ANY (ARRAY(
                SELECT journey_id FROM journey_backtests
                WHERE organization_id = %(organization_id)s AND due_at <= %(now)s
                ORDER BY due_at
                LIMIT 1
                FOR UPDATE SKIP LOCKED
            ))
            RETURNING {columns}
            """,
            columns=_COLUMNS,
        ),
        {"organization_id": organization_id, "until": until, "now": tx.now},
    )


async def _finish(
    tx: Tx,
    organization_id: UUID,
    request: BacktestRow,
    *,
    report: BacktestReport | None,
    failure: str | None,
    due_at: datetime | None,
) -> None:
    """Save the result of a request, unless a newer request replaced it. With `due_at` the request is retried."""
    await tx.execute(
        """
        UPDATE journey_backtests
        SET report = %(report)s::json, failure = %(failure)s, due_at = %(due_at)s,
            ended_at = CASE WHEN %(due_at)s::timestamptz IS NULL THEN %(now)s::timestamptz END
        WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s AND asked_at = %(asked_at)s
        """,
        {
            "organization_id": organization_id,
            "journey_id": request.journey_id,
            "asked_at": request.asked_at,
            "report": None if report is None else msgspec.json.encode(report.as_data()).decode(),
            "failure": failure,
            "due_at": due_at,
            "now": tx.now,
        },
    )


class BacktestQueue(Queue):
    name = QUEUE
    due = Due(table="journey_backtests", waits=(WaitLimit(at_most=(SILENT_MAX,), waits_again=True),))
    schedule = Schedule(waits_s=(5,))
    passes_at_once = 1

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        async with database.transaction() as tx:
            request = await _take_due(tx, organization_id, until=tx.now + SILENT_MAX)
        if request is None:
            return False
        # A list with one number, so that two tasks can share it.
        progress = [0]
        reporting = asyncio.create_task(_report_progress(database, organization_id, request, progress))
        report = failure = error = None
        try:
            async with asyncio.timeout(BACKTEST_S_MAX):
                report = await _run_backtest(database, organization_id, request, progress)
        except TimeoutError:
            failure = "It took more than five minutes; choose fewer days."
        except Refused as refused:
            failure = str(refused)
        except Exception as unexpected:  # noqa: BLE001  # the schedule retries it, then gives up
            error = unexpected
        finally:
            reporting.cancel()
        async with database.transaction() as tx:
            due_at = None
            if error is not None:
                due_at = self.schedule.due_at(tx.now, attempts=request.attempts)
                log_failure(self.name, organization_id, error, attempts=request.attempts, is_parked=due_at is None)
                failure = "It failed; the log of the worker says why." if due_at is None else None
            await _finish(tx, organization_id, request, report=report, failure=failure, due_at=due_at)
        return True


async def _run_backtest(
    database: Database, organization_id: UUID, request: BacktestRow, progress: list[int]
) -> BacktestReport:
    async with database.transaction() as tx:
        texting = await load_texting(tx, organization_id)
        if texting is None:
            raise Refused("The organization is gone.")
        return await backtest_definition(
            tx,
            organization_id,
            request.journey_id,
            read_definition(request.definition.encode()),
            version=request.version or 0,
            texting=texting,
            days=request.days,
            on_progress=lambda facts: progress.__setitem__(0, facts),
        )


async def _report_progress(
    database: Database, organization_id: UUID, request: BacktestRow, progress: list[int]
) -> None:
    """Store the progress every second, which also extends the claim of the request."""
    while True:
        await asyncio.sleep(PROGRESS_INTERVAL_S)
        async with database.transaction() as tx:
            await tx.execute(
                """
                UPDATE journey_backtests SET facts = %s, due_at = %s
                WHERE organization_id = %s AND journey_id = %s AND asked_at = %s AND ended_at IS NULL
                """,
                (progress[0], tx.now + SILENT_MAX, organization_id, request.journey_id, request.asked_at),
            )
