"""Telling the worker that an outbox has something new: after the commit, on a connection of its own, and rarely.

A job is never deferred inside a write transaction. Procrastinate's insert notifies, and PostgreSQL commits
transactions that notified one after another under one lock, which would end group commit for every writer. So the
write only records its fact; this sends at most one wake-up per interval, for all organizations that wrote. A lost
wake-up costs a second at most, because the worker polls.
"""

import asyncio
import contextlib
from collections.abc import Collection
from typing import Final
from uuid import UUID

import procrastinate
from procrastinate import exceptions

from regulars.kit import log
from regulars.work.app import DRAIN_JOB, DRAIN_QUEUE, create_app

INTERVAL_S: Final = 0.5
CLOSE_WAIT_S: Final = 2.0

_log = log.get(__name__)


class Waker:
    """One per server process; `wake` is cheap enough for the hot path."""

    def __init__(self, url: str) -> None:
        self._app = create_app(url, pool_max=1)
        self._waiting: set[UUID] = set()
        self._task: asyncio.Task[None] | None = None
        self._open = False

    async def open(self) -> None:
        await self._app.open_async()
        self._open = True

    async def close(self) -> None:
        """Send what is waiting, then let go of the connection."""
        if not self._open:
            return
        self._open = False
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._task, CLOSE_WAIT_S)
        await self._app.close_async()

    def wake(self, organization_id: UUID) -> None:
        """Ask for a drain soon; calls within the interval become one."""
        if not self._open:
            return
        self._waiting.add(organization_id)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._waiting:
            await asyncio.sleep(INTERVAL_S)
            batch, self._waiting = self._waiting, set()
            await _defer_drain(self._app, batch)


async def _defer_drain(app: procrastinate.App, organization_ids: Collection[UUID]) -> None:
    """One job for all of them. While one waits, another is not queued: the poll finds what it would have found."""
    job = app.configure_task(DRAIN_JOB, queue=DRAIN_QUEUE, queueing_lock=DRAIN_JOB)
    try:
        await job.defer_async(organization_ids=[*sorted(map(str, organization_ids))])
    except exceptions.AlreadyEnqueued:
        pass
    except Exception as error:  # noqa: BLE001  # a wake-up is a courtesy: whatever is wrong, the poll finds the rows
        _log.warning("wake.failed", organizations=len(organization_ids), error=type(error).__name__)
