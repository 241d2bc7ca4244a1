"""The jobs every worker runs: drains on demand, sweeps on a schedule, and the rescue of jobs whose worker died."""

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final
from uuid import UUID

import procrastinate
from procrastinate import exceptions, jobs

from regulars.kit import log
from regulars.kit.db import Database
from regulars.work import outbox
from regulars.work.app import DRAIN_JOB, DRAIN_QUEUE, SCHEDULE_QUEUE
from regulars.work.facts import Listeners

HEARTBEAT_S: Final = 10.0
# Three missed heartbeats: the worker is gone, or cut off from the database, and its jobs belong to nobody.
STALLED_AFTER_S: Final = 30.0
RESCUE_CRON: Final = "* * * * *"
HOUSEKEEPING_CRON: Final = "17 * * * *"
FINISHED_JOBS_KEPT_H: Final = 72

_log = log.get(__name__)

Run = Callable[[Database, UUID], Awaitable[Any]]
OrganizationIds = Callable[[Database], Awaitable[Sequence[UUID]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """Something to do for every organization on a schedule, one organization at a time."""

    name: str
    cron: str
    run: Run


@dataclasses.dataclass(frozen=True, kw_only=True)
class Work:
    """All a worker needs to know; `worker.py` fills it in."""

    database: Database
    organization_ids: OrganizationIds
    listeners: Listeners
    sweeps: Sequence[Sweep]


def register(app: procrastinate.App, work: Work) -> None:
    """Make the jobs known to the application that runs them."""

    @app.task(name=DRAIN_JOB, queue=DRAIN_QUEUE)
    async def drain(organization_ids: list[str]) -> None:
        await _drain_each(work, [UUID(organization_id) for organization_id in organization_ids])

    @app.periodic(cron=RESCUE_CRON)
    @app.task(name="work.rescue", queue=SCHEDULE_QUEUE, queueing_lock="work.rescue")
    async def rescue(timestamp: int) -> None:  # noqa: ARG001  # the schedule passes the time it meant
        await rescue_stalled_jobs(app)

    @app.periodic(cron=HOUSEKEEPING_CRON)
    @app.task(name="work.forget", queue=SCHEDULE_QUEUE, queueing_lock="work.forget")
    async def forget(timestamp: int) -> None:  # noqa: ARG001  # the schedule passes the time it meant
        await app.job_manager.delete_old_jobs(
            nb_hours=FINISHED_JOBS_KEPT_H, include_failed=True, include_cancelled=True, include_aborted=True
        )

    for sweep in work.sweeps:
        _register_sweep(app, work, sweep)


def _register_sweep(app: procrastinate.App, work: Work, sweep: Sweep) -> None:
    @app.periodic(cron=sweep.cron)
    @app.task(name=sweep.name, queue=SCHEDULE_QUEUE, queueing_lock=sweep.name)
    async def run(timestamp: int) -> None:  # noqa: ARG001  # the schedule passes the time it meant
        await for_every_organization(work, sweep.name, sweep.run)


async def drain_all(work: Work) -> None:
    """What the poll does each second: one statement for an organization with nothing new."""
    await _drain_each(work, await work.organization_ids(work.database))


async def _drain_each(work: Work, organization_ids: Sequence[UUID]) -> None:
    async def drain(database: Database, organization_id: UUID) -> int:
        return await outbox.drain(database, organization_id, work.listeners)

    await _run_for_each(work, organization_ids, DRAIN_JOB, drain)


async def for_every_organization(work: Work, name: str, run: Run) -> None:
    await _run_for_each(work, await work.organization_ids(work.database), name, run)


async def _run_for_each(work: Work, organization_ids: Sequence[UUID], name: str, run: Run) -> None:
    """Run it for each organization; one that fails is logged and holds up no other."""
    for organization_id in organization_ids:
        try:
            await run(work.database, organization_id)
        except Exception:  # noqa: BLE001  # it is logged with its traceback; the next organization must still get its turn
            _log.exception("work.failed", job=name, organization_id=str(organization_id))


async def rescue_stalled_jobs(app: procrastinate.App) -> int:
    """Queue again the jobs of workers that stopped sending heartbeats; answer how many were found."""
    stalled = list(await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_AFTER_S))
    for job in stalled:
        try:
            await app.job_manager.retry_job(job)
        except exceptions.UniqueViolation:
            # The same drain is already waiting again, so the stalled one has nothing left to do.
            await app.job_manager.finish_job(job, status=jobs.Status.FAILED, delete_job=True)
        _log.warning("work.rescued", job=job.task_name, job_id=job.id)
    return len(stalled)
