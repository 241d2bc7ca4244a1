"""Running a worker until it is told to stop, through restarts of the database."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

import psycopg
from procrastinate import exceptions

from regulars.kit import failpoint, log
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.work import jobs
from regulars.work.app import create_app
from regulars.work.loop import Loop
from regulars.work.queue import Queue
from regulars.work.statistics import Statistics
from regulars.work.wake import listen_forever

CONCURRENT_JOBS: Final = 4
# Jobs, the heartbeat and the periodic deferrer ask for a connection at the same time.
POOL_MAX: Final = 4
RESTART_WAITS_S: Final = (1.0, 2.0, 5.0, 10.0)

_log = log.get(__name__)


async def run_worker(database: Database, queues: Sequence[Queue], *, stop: asyncio.Event, grace_s: float) -> None:
    """Work until `stop` is set, then finish what is running, for `grace_s` at most."""
    loop = Loop(database, queues)
    # What a turn leaves for another queue is taken up at once.
    database.after_commit = loop.wake
    async with asyncio.TaskGroup() as group:
        serving = [
            group.create_task(loop.run()),
            group.create_task(listen_forever(database, loop.wake)),
            group.create_task(_run_jobs(database, loop, stop=stop, grace_s=grace_s)),
            group.create_task(Statistics(database).run()),
        ]
        _log.info("worker.started")
        failpoint.hit("start")
        await stop.wait()
        failpoint.hit("drain")
        for task in serving:
            task.cancel()
        _, unfinished = await asyncio.wait(serving, timeout=grace_s)
        for task in unfinished:
            # It went on to finish what was running, and its time is over: claims lapse, transactions roll back.
            task.cancel()
    _log.info("worker.stopped")


async def _run_jobs(database: Database, loop: Loop, *, stop: asyncio.Event, grace_s: float) -> None:
    """Procrastinate, through losses of the database; the queues of ours go on by themselves."""
    failures = 0
    while not stop.is_set():
        started = asyncio.get_running_loop().time()
        try:
            await _run_jobs_once(database, loop, grace_s=grace_s)
        except (*CONNECTION_ERRORS, exceptions.ConnectorException, psycopg.Error) as error:
            _log.warning("worker.lost_database", error=type(error).__name__)
        # A run that lasted had a working database: its end starts the waits anew.
        failures = 0 if asyncio.get_running_loop().time() - started > RESTART_WAITS_S[-1] else failures + 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), RESTART_WAITS_S[min(failures, len(RESTART_WAITS_S) - 1)])


async def _run_jobs_once(database: Database, loop: Loop, *, grace_s: float) -> None:
    app = create_app(database.url, pool_max=POOL_MAX)
    jobs.register(app, loop.wake)
    try:
        async with app.open_async():
            await jobs.rescue_stalled_jobs(app)
            await app.run_worker_async(
                concurrency=CONCURRENT_JOBS,
                delete_jobs="successful",
                install_signal_handlers=False,
                shutdown_graceful_timeout=grace_s,
                update_heartbeat_interval=jobs.HEARTBEAT_S,
                stalled_worker_timeout=jobs.STALLED_AFTER_S,
            )
    finally:
        # An opening that a stop cancels leaves the pool's own tasks, which outlive any cancellation and the process.
        await app.close_async()
