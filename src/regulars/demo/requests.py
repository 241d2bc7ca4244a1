"""Runs, which load a demo: those that users request on a page, which the worker does, and those of `regulars demo`.

A run stores its progress in `demo_runs`, which a page shows. An organization has one row, so that nothing is loaded
twice at the same time.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.demo.fill import fill_with_demo
from regulars.demo.load import DemoPlan, Progress
from regulars.demo.people import count_customers
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.kit.vault import AnyVault
from regulars.organizations.manage import find_secret_and_country
from regulars.work.queue import Due, Queue, Schedule, WaitLimit, log_failure

QUEUE: Final = "demo.run"
TICKETS: Final = 20_000
SEED: Final = 1
PROGRESS_EVERY_S: Final = 1.0
# A worker that has stored no progress for this long counts as dead. Another worker starts again and skips existing
# rows.
SILENT_MAX: Final = timedelta(minutes=2)


class DemoRun(NamedTuple):
    """A row of `demo_runs`; `progress` has the number of loaded rows by kind, such as `tickets`."""

    tickets: int
    progress: dict[str, int]
    attempts: int
    created_at: datetime
    finished_at: datetime | None
    failed_at: datetime | None
    seed: int
    last_day: date | None

    @property
    def plan(self) -> DemoPlan:
        last_day = self.last_day or datetime.now(UTC).date()
        return DemoPlan(seed=self.seed, sales=self.tickets, customers=count_customers(self.tickets), last_day=last_day)


async def find_run(tx: Tx, organization_id: UUID) -> DemoRun | None:
    return await tx.fetch_first(
        DemoRun, "SELECT {columns} FROM demo_runs WHERE organization_id = %s", (organization_id,)
    )


async def finish_run(tx: Tx, organization_id: UUID, progress: Mapping[str, int]) -> None:
    await tx.execute(
        "UPDATE demo_runs SET progress = %s, due_at = NULL, finished_at = %s WHERE organization_id = %s",
        (msgspec.json.encode(progress).decode(), tx.now, organization_id),
    )


async def lock_requests(tx: Tx, user_id: UUID) -> None:
    """Let one request of a user wait for another, whose demo it then finds: a button may be pressed twice."""
    await tx.execute("SELECT pg_advisory_xact_lock(hashtextextended('demo ' || %s::text, 0))", (user_id,))


async def request_demo(tx: Tx, organization_id: UUID, *, tickets: int = TICKETS) -> bool:
    """Request a demo; return False if the organization has one already."""
    inserted = await tx.execute(
        "INSERT INTO demo_runs (organization_id, tickets, seed, last_day, created_at, due_at)"
        " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (organization_id) DO NOTHING",
        (organization_id, tickets, SEED, tx.now.date(), tx.now, tx.now),
    )
    if inserted:
        tx.queues_to_wake.add((QUEUE, organization_id))
    return inserted == 1


async def begin_run(tx: Tx, organization_id: UUID, plan: DemoPlan) -> bool:
    """Record a run that starts at once; return False if the demo is being loaded, or will be loaded again soon."""
    started = await tx.execute(
        "INSERT INTO demo_runs AS r (organization_id, tickets, seed, last_day, attempts, created_at, due_at)"
        " VALUES (%s, %s, %s, %s, 1, %s, %s) ON CONFLICT (organization_id) DO UPDATE"
        " SET tickets = EXCLUDED.tickets, seed = EXCLUDED.seed, last_day = EXCLUDED.last_day, attempts = 1,"
        "   progress = '{}', created_at = EXCLUDED.created_at, due_at = EXCLUDED.due_at, finished_at = NULL,"
        "   failed_at = NULL"
        " WHERE r.due_at IS NULL OR r.due_at <= EXCLUDED.created_at",
        (organization_id, plan.sales, plan.seed, plan.last_day, tx.now, tx.now + SILENT_MAX),
    )
    return started == 1


async def give_up_run(tx: Tx, organization_id: UUID) -> None:
    await tx.execute(
        "UPDATE demo_runs SET due_at = NULL, failed_at = %s WHERE organization_id = %s", (tx.now, organization_id)
    )


async def do_run(
    database: Database,
    organization_id: UUID,
    plan: DemoPlan,
    *,
    secret: bytes,
    vault: AnyVault | None,
    progress: Progress | None = None,
) -> None:
    """Load the demo of a run that has begun, and store the progress of the run and its end."""
    loaded: Counter[str] = Counter()

    def count(kind: str, number: int) -> None:
        loaded[kind] += number
        if progress is not None:
            progress(kind, number)

    reporting = asyncio.create_task(_report_progress(database, organization_id, loaded))
    try:
        await fill_with_demo(database, organization_id, plan, secret=secret, vault=vault, progress=count)
    finally:
        reporting.cancel()
        await asyncio.wait([reporting])
    async with database.transaction() as tx:
        await finish_run(tx, organization_id, loaded)


class DemoQueue(Queue):
    """Loads one demo per pass; a failed run is retried after 10 and 60 seconds."""

    name = QUEUE
    due = Due(table="demo_runs", waits=(WaitLimit(at_most=(SILENT_MAX,), waits_again=True),))
    schedule = Schedule(waits_s=(10, 60))
    passes_at_once = 1

    def __init__(self, vault: AnyVault | None = None) -> None:
        self._vault = vault

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        async with database.transaction() as tx:
            # Claim the run until a deadline, which `_report_progress` extends; if the worker dies, the run becomes due
            # again.
            run = await tx.fetch_first(
                DemoRun,
                "UPDATE demo_runs SET due_at = %s, attempts = attempts + 1, progress = '{}' WHERE organization_id = %s"
                " AND organization_id IN (SELECT organization_id FROM demo_runs WHERE organization_id = %s"
                "   AND due_at <= %s FOR UPDATE SKIP LOCKED)"
                " RETURNING {columns}",
                (tx.now + SILENT_MAX, organization_id, organization_id, tx.now),
            )
            if run is None:
                return False
            secret = (await find_secret_and_country(tx.connection, organization_id)).secret
        try:
            await do_run(database, organization_id, run.plan, secret=secret, vault=self._vault)
        except Exception as error:  # noqa: BLE001  # the schedule retries it, then gives up
            async with database.transaction() as tx:
                due_at = self.schedule.due_at(tx.now, attempts=run.attempts)
                log_failure(self.name, organization_id, error, attempts=run.attempts, is_parked=due_at is None)
                await tx.execute(
                    "UPDATE demo_runs SET due_at = %s, failed_at = %s WHERE organization_id = %s",
                    (due_at, tx.now if due_at is None else None, organization_id),
                )
        return False


async def _report_progress(database: Database, organization_id: UUID, loaded: Counter[str]) -> None:
    while True:
        await asyncio.sleep(PROGRESS_EVERY_S)
        with contextlib.suppress(*CONNECTION_ERRORS):
            async with database.transaction() as tx:
                await tx.execute(
                    "UPDATE demo_runs SET progress = %s, due_at = %s WHERE organization_id = %s AND due_at IS NOT NULL",
                    (msgspec.json.encode(loaded).decode(), tx.now + SILENT_MAX, organization_id),
                )
