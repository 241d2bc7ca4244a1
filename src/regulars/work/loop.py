"""The worker's loop over every queue: find who has something due, give each a turn, and start again.

Organizations stand in a ring for each queue. A turn is a bounded bite, and whoever has more goes to the end of the
ring, so a busy organization never starves a quiet one. A look finds only what became due since the last, so that it
stays cheap beside a long backlog: those with a backlog are in the ring already. What a look may miss, because its
transaction committed late or its turn was lost with another worker, the next full look finds.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import Database, Tx
from regulars.work.due import find_due_organizations, list_organizations_by_node
from regulars.work.queue import Queue, log_trouble

# Rows carry the time their transaction began, and show when it commits: a look goes back by this much.
COMMITS_LATE_BY: Final = timedelta(seconds=5)
# A full scan finds the work that a pass skipped because another transaction had locked it. It runs often, but for no
# more than this share of the time, since it reads the whole backlog.
FULL_LOOK_EVERY_S: Final = 5.0
FULL_LOOK_EVERY_S_MAX: Final = 60.0
FULL_LOOK_SHARE: Final = 0.005
# Of a queue that gathers: how much later an organization has its next turn for each one that has turns like it, and at
# most. A turn costs about as much for one row as for twenty.
APART_S: Final = 0.005
APART_S_MAX: Final = 1.0
# After a turn that failed; a database that is gone is not asked in a tight circle.
AFTER_FAILURE_S: Final = 1.0

_log = log.get(__name__)


class Loop:
    """One per worker process; it runs until it is cancelled."""

    def __init__(self, database: Database, queues: Sequence[Queue]) -> None:
        self._database = database
        self._servers = {queue.name: _Server(database, queue) for queue in queues}

    def wake(self, queue: str, organization_id: UUID) -> None:
        """Give the organization a turn soon; a queue of a newer release is left to it."""
        server = self._servers.get(queue)
        if server is not None:
            server.ring.add(organization_id)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._look_forever())
                for server in self._servers.values():
                    for _ in range(server.queue.turns_at_once):
                        group.create_task(server.serve_forever())
        finally:
            for server in self._servers.values():
                await server.queue.finish()

    async def _look_forever(self) -> None:
        """All queues that are to be looked at now share a transaction: an idle worker costs next to nothing."""
        servers = list(self._servers.values())
        while servers:
            waiting = [server for server in servers if server.next_look_at <= monotonic()]
            try:
                await self._look(waiting)
            except Exception:  # noqa: BLE001  # one of them is in trouble, and the others must be looked at all the same
                for server in waiting:
                    try:
                        await self._look([server])
                    except Exception as error:  # noqa: BLE001  # whatever is wrong with this look, the next one must come
                        server.failed(error)
                        await self._look_by_node(server)
            await asyncio.sleep(max(0.0, min(server.next_look_at for server in servers) - monotonic()))

    async def _look(self, servers: Sequence["_Server"]) -> None:
        if servers:
            async with self._database.transaction() as tx:
                for server in servers:
                    await server.look(tx)

    async def _look_by_node(self, server: "_Server") -> None:
        """On a cluster a node that is down fails what reads all of them: each node is read by itself then."""
        try:
            async with self._database.reading() as tx:
                together = await list_organizations_by_node(tx)
        except Exception:  # noqa: BLE001  # the coordinator is gone, too
            return
        for organization_ids in together:
            try:
                async with self._database.transaction() as tx:
                    await server.look_among(tx, organization_ids)
            except Exception as error:  # noqa: BLE001  # this is the node that is down, or one of them
                _log.warning("work.node_failed", queue=server.queue.name, error=type(error).__name__)


class _Ring:
    """Organizations that wait for a turn, each once; one that is asked for during its turn gets another.

    Where turns gather, one that had its turn a moment ago waits until more has come together for it: the longer, the
    more organizations there are that take turns.
    """

    def __init__(self, *, gathers: bool) -> None:
        self._gathers = gathers
        self._waiting: asyncio.Queue[UUID] = asyncio.Queue()
        self._queued: set[UUID] = set()
        self._running: set[UUID] = set()
        self._again: set[UUID] = set()
        # Those that had a turn lately, and when; the oldest first.
        self._served: dict[UUID, float] = {}

    def add(self, organization_id: UUID) -> None:
        if organization_id in self._running:
            self._again.add(organization_id)
        elif organization_id not in self._queued:
            self._queued.add(organization_id)
            wait_s = self._wait_s(organization_id)
            if wait_s > 0:
                asyncio.get_running_loop().call_later(wait_s, self._waiting.put_nowait, organization_id)
            else:
                self._waiting.put_nowait(organization_id)

    def _wait_s(self, organization_id: UUID) -> float:
        served_at = self._served.get(organization_id)
        if served_at is None:
            return 0.0
        return served_at + min(APART_S_MAX, APART_S * len(self._served)) - monotonic()

    async def next(self) -> UUID:
        organization_id = await self._waiting.get()
        self._queued.discard(organization_id)
        self._running.add(organization_id)
        return organization_id

    def release(self, organization_id: UUID, *, has_more: bool) -> None:
        self._running.discard(organization_id)
        self._served.pop(organization_id, None)
        if self._gathers:
            self._note_served(organization_id, has_more=has_more)
        if has_more or organization_id in self._again:
            self._again.discard(organization_id)
            self.add(organization_id)

    def _note_served(self, organization_id: UUID, *, has_more: bool) -> None:
        now = monotonic()
        if not has_more:
            self._served[organization_id] = now
        while self._served and now - (oldest := next(iter(self._served.items())))[1] > APART_S_MAX:
            del self._served[oldest[0]]


class _Server:
    """One queue being served."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self.queue = queue
        self.ring = _Ring(gathers=queue.gathers)
        self._database = database
        self._looked_until: datetime | None = None
        self._next_full_look_at = float("-inf")
        self.next_look_at = float("-inf")

    async def look(self, tx: Tx) -> None:
        """Put those into the ring that have something due which they had not at the last look."""
        started = monotonic()
        is_full = self._looked_until is None or started >= self._next_full_look_at
        after = None if is_full or self._looked_until is None else self._looked_until - COMMITS_LATE_BY
        for organization_id in await find_due_organizations(tx, self.queue.due, after=after):
            self.ring.add(organization_id)
        self._looked_until = tx.now
        if is_full:
            took_s = monotonic() - started
            apart_s = min(FULL_LOOK_EVERY_S_MAX, max(FULL_LOOK_EVERY_S, took_s / FULL_LOOK_SHARE))
            self._next_full_look_at = started + apart_s
        self.next_look_at = started + self.queue.look_every_s

    async def look_among(self, tx: Tx, organization_ids: Sequence[UUID]) -> None:
        for organization_id in await find_due_organizations(tx, self.queue.due, after=None, among=organization_ids):
            self.ring.add(organization_id)

    def failed(self, error: Exception) -> None:
        _log.warning("work.look_failed", queue=self.queue.name, error=type(error).__name__)
        self._looked_until = None
        self.next_look_at = monotonic() + self.queue.look_every_s

    async def serve_forever(self) -> None:
        while True:
            organization_id = await self.ring.next()
            has_more = False
            try:
                has_more = await self.queue.take_turn(self._database, organization_id)
            except Exception as error:  # noqa: BLE001  # it is logged; the others must get their turn
                log_trouble("work.turn_failed", self.queue.name, organization_id, error)
                asyncio.get_running_loop().call_later(AFTER_FAILURE_S, self.ring.add, organization_id)
            finally:
                self.ring.release(organization_id, has_more=has_more)
