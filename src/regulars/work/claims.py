"""A queue for whatever talks to a network: claim, commit, talk outside any transaction, write down what came of it.

A claim is a row with an owner and a deadline, which is its due time. If the owner dies, the row is due again at the
deadline, and whoever takes it sees from the owner that a claim lapsed. Talking ends before the deadline, so two
workers never talk about one row at the same time.
"""

import abc
import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Generic, TypeVar
from uuid import UUID

from regulars.kit import ids, log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.work.batch_size import HELD_UP
from regulars.work.queue import Queue, log_trouble

CLAIM_FOR: Final = timedelta(seconds=30)
# Between the end of talking and the end of the claim: enough to write the outcome down.
SETTLE_S: Final = 5.0
SETTLE_AGAIN_S: Final = 0.5

_log = log.get(__name__)

Claim = TypeVar("Claim")
Outcome = TypeVar("Outcome")


class ClaimQueue(Queue, Generic[Claim, Outcome]):
    """Implement `claim`, `act` and `settle`. Attempts, the schedule and parking are decided in `settle`."""

    claim_for: timedelta = CLAIM_FOR
    # How many rows may be claimed at a time by one turn, and by this process in all.
    bite_rows: int = 64
    at_once_max: int = 512

    def __init__(self) -> None:
        self.owner: Final = ids.new_uuid()
        self._acting: set[asyncio.Task[bool]] = set()
        self._unsettled: dict[UUID, list[tuple[Claim, Outcome]]] = {}
        self._settlers: dict[UUID, asyncio.Task[None]] = {}
        self._held_up: set[UUID] = set()

    @abc.abstractmethod
    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, owner: UUID, until: datetime
    ) -> Sequence[Claim]:
        """Take due rows with FOR UPDATE SKIP LOCKED, and note the owner and the deadline as their due time.

        A due row that has an owner already is one whose claim lapsed; what that means is the queue's to decide here.
        """

    @abc.abstractmethod
    async def act(self, organization_id: UUID, claim: Claim) -> Outcome:
        """Talk; no transaction is open. What it raises is logged, and the claim lapses."""

    @abc.abstractmethod
    async def settle(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[Claim, Outcome]]) -> None:
        """Write the outcomes to rows that still have this owner and deadline; others were claimed anew meanwhile."""

    async def take_turn(self, database: Database, organization_id: UUID) -> bool:
        room = min(self.bite_rows, self.at_once_max - len(self._acting))
        if room <= 0:
            self._held_up.add(organization_id)
            return False
        # Before the transaction begins, whose time the deadline is counted from: its commit may take long.
        talk_until = monotonic() + self.claim_for.total_seconds() - SETTLE_S
        async with database.transaction() as tx:
            until = tx.now + self.claim_for
            claims = await self.claim(tx, organization_id, limit=room, owner=self.owner, until=until)
        for claim in claims:
            task = asyncio.create_task(self._act(database, organization_id, claim, talk_until=talk_until))
            self._acting.add(task)
            task.add_done_callback(partial(self._end, database))
        return len(claims) == room

    def _end(self, database: Database, task: asyncio.Task[bool]) -> None:
        self._acting.discard(task)
        if task.cancelled() or not task.result():
            self._let_on(database)

    def _let_on(self, database: Database) -> None:
        """Places are free again, and no settling will tell those who wait for one."""
        held_up, self._held_up = self._held_up, set()
        database.tell_committed([(self.name, organization_id) for organization_id in held_up])

    async def finish(self) -> None:
        while self._acting or self._settlers:
            await asyncio.gather(*self._acting, *self._settlers.values(), return_exceptions=True)

    async def _act(self, database: Database, organization_id: UUID, claim: Claim, *, talk_until: float) -> bool:
        """Talk, and have what came of it written down; tell whether anything came."""
        try:
            outcome = await self._act_in_time(organization_id, claim, until=talk_until)
        except Exception as error:  # noqa: BLE001  # the claim lapses, and the row is tried again
            log_trouble("work.act_failed", self.name, organization_id, error)
            return False
        self._unsettled.setdefault(organization_id, []).append((claim, outcome))
        if organization_id not in self._settlers:
            task = asyncio.create_task(self._settle_all(database, organization_id))
            self._settlers[organization_id] = task
        return True

    async def _act_in_time(self, organization_id: UUID, claim: Claim, *, until: float) -> Outcome:
        left_s = until - monotonic()
        if left_s <= 0:
            raise TimeoutError
        async with asyncio.timeout(left_s):
            return await self.act(organization_id, claim)

    async def _settle_all(self, database: Database, organization_id: UUID) -> None:
        """Everything that ended while the last outcomes were being committed is written in one transaction."""
        try:
            while done := self._unsettled.pop(organization_id, []):
                try:
                    await self._settle_in_time(database, organization_id, done)
                except Exception as error:  # noqa: BLE001  # the claims lapse, and the rows are tried again
                    log_trouble("work.settle_failed", self.name, organization_id, error)
                    self._let_on(database)
        finally:
            del self._settlers[organization_id]

    async def _settle_in_time(
        self, database: Database, organization_id: UUID, done: Sequence[tuple[Claim, Outcome]]
    ) -> None:
        """A database that is away for a moment must not make what is known unknown: try until the claims lapse.

        A commit whose answer was lost may have happened. Tried again it finds rows that are no longer claimed, and
        writes nothing. When the time is up, each part that is left is tried once: it may never have been tried alone.
        """
        until = monotonic() + self.claim_for.total_seconds()
        # Outcomes that are written together; one that waits for a lock is written apart from the others.
        parts = [done]
        failure: Exception | None = None
        while parts:
            part = parts.pop(0)
            try:
                await self._settle_part(database, organization_id, part)
            except CONNECTION_ERRORS as error:
                if monotonic() >= until:
                    failure = error
                    continue
                _log.warning("work.settle_again", queue=self.name, error=type(error).__name__, outcomes=len(part))
                middle = len(part) // 2
                if isinstance(error, HELD_UP) and middle:
                    parts = [part[:middle], part[middle:], *parts]
                    continue
                parts.append(part)
                await asyncio.sleep(SETTLE_AGAIN_S)
        if failure is not None:
            raise failure

    async def _settle_part(
        self, database: Database, organization_id: UUID, done: Sequence[tuple[Claim, Outcome]]
    ) -> None:
        async with database.transaction() as tx:
            await self.settle(tx, organization_id, done)
            # Slots are free again: the organizations that waited for one, and this organization itself, may go on.
            held_up = {organization_id, *self._held_up}
            tx.touched.update((self.name, waiting) for waiting in held_up)
        self._held_up -= held_up
