"""Running a worker until it is told to stop, through restarts of the database."""

import asyncio
from collections.abc import Sequence

from regulars.kit import failpoint, log
from regulars.kit.db import Database
from regulars.work.loop import Loop
from regulars.work.queue import Queue
from regulars.work.statistics import Statistics
from regulars.work.wake import listen_forever

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
