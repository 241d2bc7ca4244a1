"""The jobs of Procrastinate that every worker runs: the rescue of jobs whose worker died, and forgetting old ones."""

from collections.abc import Callable
from typing import Final
from uuid import UUID

import procrastinate
from procrastinate import exceptions, jobs

from regulars.kit import log
from regulars.work.app import DRAIN_JOB, DRAIN_QUEUE, SCHEDULE_QUEUE
from regulars.work.outbox import OutboxQueue

HEARTBEAT_S: Final = 10.0
# Three missed heartbeats: the worker is gone, or cut off from the database, and its jobs belong to nobody.
STALLED_AFTER_S: Final = 30.0
RESCUE_CRON: Final = "* * * * *"
HOUSEKEEPING_CRON: Final = "17 * * * *"
FINISHED_JOBS_KEPT_H: Final = 72

_log = log.get(__name__)


def register(app: procrastinate.App, wake: Callable[[str, UUID], None]) -> None:
    """Make the jobs known to the application that runs them."""

    @app.task(name=DRAIN_JOB, queue=DRAIN_QUEUE)
    async def drain(organization_ids: list[str]) -> None:
        # How servers of the release before this one wake the worker.
        for organization_id in organization_ids:
            wake(OutboxQueue.name, UUID(organization_id))

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


async def rescue_stalled_jobs(app: procrastinate.App) -> int:
    """Queue again the jobs of workers that stopped sending heartbeats; answer how many were found."""
    stalled = list(await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_AFTER_S))
    for job in stalled:
        try:
            await app.job_manager.retry_job(job)
        except exceptions.UniqueViolation:
            # The same job is already waiting again, so the stalled one has nothing left to do.
            await app.job_manager.finish_job(job, status=jobs.Status.FAILED, delete_job=True)
        _log.warning("work.rescued", job=job.task_name, job_id=job.id)
    return len(stalled)
