"""The worker's loop over all queues: find the organizations with due rows, and run a pass (a batch of rows) for each.

Each queue has a ring of organizations. A pass handles a limited batch, and an organization with more due rows goes to
the end of the ring, so a busy organization never starves a quiet one. A poll finds only rows that became due since the
last poll, so it is cheap even with a long backlog: organizations with a backlog are in the ring already. The next full
poll finds rows that a poll missed, because their transaction committed late or another worker died during their pass.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit import failpoint, log
from regulars.kit.clock import monotonic
from regulars.kit.db import Database, Tx
from regulars.work.clock_steps import pull_forward
from regulars.work.due import find_due_organizations, list_organizations_by_node
from regulars.work.queue import Queue, log_queue_error
from regulars.work.statistics import Statistics
from regulars.work.wake import listen_forever

# A row has the time at which its transaction began, but is visible only after the commit. So a poll also finds rows
# that became due up to this long before the last poll.
COMMIT_DELAY_MAX: Final = timedelta(seconds=5)
# A full poll also finds rows that a pass skipped because another transaction had locked them. It reads the whole
# backlog, so it runs for at most this share of the time.
FULL_POLL_EVERY_S: Final = 5.0
FULL_POLL_EVERY_S_MAX: Final = 60.0
FULL_POLL_SHARE: Final = 0.005
# For queues with `delays_passes`: the delay before the next pass of an organization is `DELAY_S` for each organization
# that was served recently, and at most `DELAY_S_MAX`, because a pass costs about as much for one row as for twenty.
DELAY_S: Final = 0.005
DELAY_S_MAX: Final = 1.0
# How often queues are checked for rows that are due too late, and for at most which share of the time.
CLOCK_CHECK_EVERY_S: Final = 30.0
CLOCK_CHECK_SHARE: Final = 0.005
# Wait after a failed pass, so that an unreachable database is not queried in a tight loop.
AFTER_FAILURE_S: Final = 1.0

_log = log.get(__name__)


async def run_worker(
    database: Database,
    queues: Sequence[Queue],
    *,
    stop: asyncio.Event,
    grace_s: float,
    on_started: Callable[[], None] = lambda: None,
) -> None:
    """Serve the queues until `stop` is set, then wait up to `grace_s` for running work."""
    loop = Loop(database, queues)
    # Rows that a pass adds to another queue are served at once.
    database.after_commit = loop.wake
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(loop.run()),
            group.create_task(listen_forever(database, loop.wake)),
            group.create_task(Statistics(database).run()),
        ]
        _log.info("worker.started")
        on_started()
        failpoint.hit("start")
        await stop.wait()
        failpoint.hit("drain")
        for task in tasks:
            task.cancel()
        _, unfinished = await asyncio.wait(tasks, timeout=grace_s)
        for task in unfinished:
            # The grace period for running work is over: claims lapse, transactions roll back.
            task.cancel()
    _log.info("worker.stopped")


class Loop:
    """Serves all queues until it is cancelled; there is one object per worker process."""

    def __init__(self, database: Database, queues: Sequence[Queue]) -> None:
        self._database = database
        self._runners = {queue.name: _QueueRunner(database, queue) for queue in queues}

    def wake(self, queue: str, organization_id: UUID) -> None:
        """Run a pass for the organization soon; a queue that this release does not have is ignored."""
        runner = self._runners.get(queue)
        if runner is not None:
            runner.ring.add(organization_id)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._poll_forever())
                group.create_task(self._check_clock_forever())
                for runner in self._runners.values():
                    for _ in range(runner.queue.passes_at_once):
                        group.create_task(runner.serve_forever())
        finally:
            for runner in self._runners.values():
                await runner.queue.finish()

    async def _poll_forever(self) -> None:
        """Poll the queues. Those whose poll is due share a transaction, so an idle worker costs next to nothing."""
        runners = list(self._runners.values())
        while runners:
            waiting = [runner for runner in runners if runner.next_poll_at <= monotonic()]
            try:
                await self._poll(waiting)
            except Exception:  # noqa: BLE001  # one poll failed; the other queues must still be polled
                for runner in waiting:
                    try:
                        await self._poll([runner])
                    except Exception as error:  # noqa: BLE001  # the loop must continue after any error
                        runner.on_poll_failure(error)
                        await self._poll_by_node(runner)
            await asyncio.sleep(max(0.0, min(runner.next_poll_at for runner in runners) - monotonic()))

    async def _check_clock_forever(self) -> None:
        """Make rows due that a step of the database's clock would delay."""
        while True:
            started = monotonic()
            for runner in self._runners.values():
                try:
                    for organization_id in await pull_forward(self._database, runner.queue):
                        runner.ring.add(organization_id)
                except Exception as error:  # noqa: BLE001  # it is logged; the other queues must still be checked
                    _log.warning("work.clock_check_failed", queue=runner.queue.name, error=type(error).__name__)
            await asyncio.sleep(max(CLOCK_CHECK_EVERY_S, (monotonic() - started) / CLOCK_CHECK_SHARE))

    async def _poll(self, runners: Sequence["_QueueRunner"]) -> None:
        if runners:
            async with self._database.transaction() as tx:
                for runner in runners:
                    await runner.poll(tx)

    async def _poll_by_node(self, runner: "_QueueRunner") -> None:
        """Poll each node of a Citus cluster separately, because a query over all nodes fails if one node is down."""
        try:
            async with self._database.reading() as tx:
                organizations_by_node = await list_organizations_by_node(tx)
        except Exception:  # noqa: BLE001  # the coordinator is down too
            return
        for organization_ids in organizations_by_node:
            try:
                async with self._database.transaction() as tx:
                    await runner.poll_among(tx, organization_ids)
            except Exception as error:  # noqa: BLE001  # this node is down; the other nodes must still be polled
                _log.warning("work.node_failed", queue=runner.queue.name, error=type(error).__name__)


class _Ring:
    """Organizations that wait for a pass, each once. An organization that is added during its pass gets another one.

    With `delays_passes`, an organization that had a pass recently waits, so that its next batch is larger; the more
    organizations are served, the longer.
    """

    def __init__(self, *, delays_passes: bool) -> None:
        self._delays_passes = delays_passes
        self._waiting: asyncio.Queue[UUID] = asyncio.Queue()
        self._queued: set[UUID] = set()
        self._running: set[UUID] = set()
        # Organizations that were added during their pass.
        self._again: set[UUID] = set()
        # Organizations that had a pass recently, with its time; oldest first.
        self._served: dict[UUID, float] = {}

    def add(self, organization_id: UUID) -> None:
        if organization_id in self._running:
            self._again.add(organization_id)
        elif organization_id not in self._queued:
            self._queued.add(organization_id)
            wait_s = self._find_wait_s(organization_id)
            if wait_s > 0:
                asyncio.get_running_loop().call_later(wait_s, self._waiting.put_nowait, organization_id)
            else:
                self._waiting.put_nowait(organization_id)

    def _find_wait_s(self, organization_id: UUID) -> float:
        served_at = self._served.get(organization_id)
        if served_at is None:
            return 0.0
        return served_at + min(DELAY_S_MAX, DELAY_S * len(self._served)) - monotonic()

    async def next(self) -> UUID:
        organization_id = await self._waiting.get()
        self._queued.discard(organization_id)
        self._running.add(organization_id)
        return organization_id

    def release(self, organization_id: UUID, *, has_more: bool) -> None:
        self._running.discard(organization_id)
        self._served.pop(organization_id, None)
        if self._delays_passes:
            self._remember_served(organization_id, has_more=has_more)
        if has_more or organization_id in self._again:
            self._again.discard(organization_id)
            self.add(organization_id)

    def _remember_served(self, organization_id: UUID, *, has_more: bool) -> None:
        now = monotonic()
        if not has_more:
            self._served[organization_id] = now
        while self._served and now - (oldest := next(iter(self._served.items())))[1] > DELAY_S_MAX:
            del self._served[oldest[0]]


class _QueueRunner:
    """Polls one queue and runs its passes."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self.queue = queue
        self.ring = _Ring(delays_passes=queue.delays_passes)
        self._database = database
        self._polled_until: datetime | None = None
        self._next_full_poll_at = float("-inf")
        self.next_poll_at = float("-inf")

    async def poll(self, tx: Tx) -> None:
        """Add the organizations that got due rows since the last poll to the ring."""
        started = monotonic()
        is_full = self._polled_until is None or started >= self._next_full_poll_at or tx.now < self._polled_until
        after = None if is_full or self._polled_until is None else self._polled_until - COMMIT_DELAY_MAX
        for organization_id in await find_due_organizations(tx, self.queue.due, after=after):
            self.ring.add(organization_id)
        self._polled_until = tx.now
        if is_full:
            took_s = monotonic() - started
            interval_s = min(FULL_POLL_EVERY_S_MAX, max(FULL_POLL_EVERY_S, took_s / FULL_POLL_SHARE))
            self._next_full_poll_at = started + interval_s
        self.next_poll_at = started + self.queue.poll_every_s

    async def poll_among(self, tx: Tx, organization_ids: Sequence[UUID]) -> None:
        for organization_id in await find_due_organizations(tx, self.queue.due, after=None, among=organization_ids):
            self.ring.add(organization_id)

    def on_poll_failure(self, error: Exception) -> None:
        _log.warning("work.look_failed", queue=self.queue.name, error=type(error).__name__)
        self._polled_until = None
        self.next_poll_at = monotonic() + self.queue.poll_every_s

    async def serve_forever(self) -> None:
        while True:
            organization_id = await self.ring.next()
            has_more = False
            try:
                has_more = await self.queue.run_pass(self._database, organization_id)
            except Exception as error:  # noqa: BLE001  # it is logged; other organizations must get their pass
                log_queue_error("work.turn_failed", self.queue.name, organization_id, error)
                asyncio.get_running_loop().call_later(AFTER_FAILURE_S, self.ring.add, organization_id)
            finally:
                self.ring.release(organization_id, has_more=has_more)
