"""Running a worker until it is told to stop, through restarts of the database."""

import asyncio
import contextlib
from typing import Final

import psycopg
from procrastinate import exceptions

from regulars.kit import log
from regulars.kit.db import CONNECTION_ERRORS
from regulars.work import jobs
from regulars.work.app import create_app

CONCURRENT_JOBS: Final = 4
# Jobs, the heartbeat and the periodic deferrer ask for a connection at the same time.
POOL_MAX: Final = 4
POLL_INTERVAL_S: Final = 1.0
RESTART_WAITS_S: Final = (1.0, 2.0, 5.0, 10.0)

_log = log.get(__name__)


async def run_worker(work: jobs.Work, *, stop: asyncio.Event, grace_s: float) -> None:
    """Work until `stop` is set, then finish what is running, for `grace_s` at most."""
    failures = 0
    while not stop.is_set():
        started = asyncio.get_running_loop().time()
        try:
            await _run_once(work, stop=stop, grace_s=grace_s)
        except (*CONNECTION_ERRORS, exceptions.ConnectorException, psycopg.Error) as error:
            _log.warning("worker.lost_database", error=type(error).__name__)
        if stop.is_set():
            return
        # A run that lasted had a working database: its end starts the waits anew.
        failures = 0 if asyncio.get_running_loop().time() - started > RESTART_WAITS_S[-1] else failures + 1
        wait = RESTART_WAITS_S[min(failures, len(RESTART_WAITS_S) - 1)]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), wait)


async def _run_once(work: jobs.Work, *, stop: asyncio.Event, grace_s: float) -> None:
    app = create_app(work.database.url, pool_max=POOL_MAX)
    jobs.register(app, work)
    async with app.open_async():
        await jobs.rescue_stalled_jobs(app)
        runner = asyncio.create_task(
            app.run_worker_async(
                concurrency=CONCURRENT_JOBS,
                delete_jobs="successful",
                install_signal_handlers=False,
                shutdown_graceful_timeout=grace_s,
                update_heartbeat_interval=jobs.HEARTBEAT_S,
                stalled_worker_timeout=jobs.STALLED_AFTER_S,
            )
        )
        poller = asyncio.create_task(_poll(work, stop))
        _log.info("worker.started")
        try:
            # The poller ends when the worker is told to stop; the runner ends first only when something broke.
            await asyncio.wait({runner, poller}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(runner, poller)
        _log.info("worker.stopped")


async def _end(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome


async def _poll(work: jobs.Work, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await jobs.drain_all(work)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), POLL_INTERVAL_S)
