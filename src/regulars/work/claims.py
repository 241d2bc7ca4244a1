"""A work queue for network calls: claim rows, commit, call outside any transaction, store the outcomes.

A claimed row has an owner (a worker process), and its due time is the deadline of the claim. If the owner dies, the row
is due again at the deadline; the next worker sees from the owner in the row that a claim lapsed. Calls end before the
deadline, so two workers never make a call for the same row at the same time.

A process has a limited number of slots for running calls. If no slot is free, organizations wait; when slots become
free, the organization that has waited longest gets a turn: some slots are reserved for its next pass.
"""

import abc
import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from regulars.kit import ids, log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.work.queue import BLOCKED_ERRORS, Queue, log_queue_error

CLAIM_FOR: Final = timedelta(seconds=30)
# Calls end this long before the claim, so that there is time to store the outcomes.
COMPLETE_S: Final = 5.0
COMPLETE_RETRY_S: Final = 0.5

_log = log.get(__name__)

Claim = TypeVar("Claim")
Outcome = TypeVar("Outcome")


class Turn(NamedTuple):
    """Slots that are reserved for one organization, and the lowest priority (greatest number) of rows it may claim."""

    lowest: int
    slots: int


class ClaimQueue(Queue, Generic[Claim, Outcome]):
    """A subclass implements `claim`, `act` and `complete`; `complete` also decides when a failed row is tried again."""

    claim_for: timedelta = CLAIM_FOR
    # How many rows one pass (`run_pass`) may claim, and how many calls (slots) this process may have running.
    batch_rows: int = 64
    at_once_max: int = 512
    # Of these slots, how many are reserved for calls of priority 0, how many more for priority 1, and so on.
    reserved_slots: tuple[int, ...] = ()
    # How many slots an organization gets in its turn at most, while other organizations use slots too.
    turn_slots: int = 16

    def __init__(self) -> None:
        self.owner: Final = ids.new_uuid()
        self._acting: set[asyncio.Task[bool]] = set()
        # Running calls, and rows that a pass may be claiming, by priority.
        self._used_slots: Counter[int] = Counter()
        self._outcomes: dict[UUID, list[tuple[Claim, Outcome]]] = {}
        self._completing: dict[UUID, asyncio.Task[None]] = {}
        # Organizations that may have due rows for which no slot was free, each with the most urgent priority of these
        # rows. The organization that has waited longest is first.
        self._waiting_for_slots: dict[UUID, int] = {}
        # Running calls by organization.
        self._calls: Counter[UUID] = Counter()
        # The slots that are reserved for organizations whose turn has come.
        self._turns: dict[UUID, Turn] = {}
        # A `claim` that skips due rows puts its organization here, with the seconds until the next pass.
        self.wake_after_s: dict[UUID, float] = {}
        self._timers: dict[UUID, asyncio.TimerHandle] = {}

    @abc.abstractmethod
    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, lowest: int, owner: UUID, until: datetime
    ) -> Sequence[Claim]:
        """Take due rows with FOR UPDATE SKIP LOCKED, and set the owner, and the deadline as their due time.

        Rows of a lower priority (a greater number) than `lowest` have no free slot and are not claimed.
        If a due row already has an owner, that claim lapsed; the queue decides here what to do with such a row.
        """

    @abc.abstractmethod
    async def act(self, organization_id: UUID, claim: Claim) -> Outcome:
        """Make the network call; no transaction is open. An exception is logged, and the claim lapses."""

    @abc.abstractmethod
    async def complete(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[Claim, Outcome]]) -> None:
        """Write the outcomes to rows that still have this owner and deadline; other rows were claimed again."""

    def priority_of(self, claim: Claim) -> int:  # noqa: ARG002  # most queues have one priority
        """Return the priority of a call; 0 is the most urgent."""
        return 0

    def _free_slots(self, priority: int) -> int:
        """Return how many rows may be claimed, if each has this priority or a more urgent one."""
        return min(
            self.at_once_max
            - sum(self.reserved_slots[:level])
            - sum(used for used_by, used in self._used_slots.items() if used_by >= level)
            for level in range(priority + 1)
        )

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        turn = self._take_slots(organization_id)
        if turn is None:
            return False
        try:
            return await self._claim_and_act(database, organization_id, limit=turn.slots, lowest=turn.lowest)
        finally:
            self._used_slots[turn.lowest] -= turn.slots
            self._wake_waiting(database)
            self._wake_later(database, organization_id)

    def _take_slots(self, organization_id: UUID) -> Turn | None:
        """Reserve slots for the lowest priority that has enough free ones, so that each claimed row finds a slot
        whatever its priority is. Without a turn, an organization gets no slots for which other organizations wait."""
        turn = self._turns.pop(organization_id, None)
        if turn is not None:
            self._used_slots[turn.lowest] -= turn.slots
        lowest = len(self.reserved_slots)
        while lowest >= 0 and (
            self._free_slots(lowest) < self._slots_min(organization_id, lowest)
            or (turn is None and self._is_waited_for(lowest))
        ):
            self._waiting_for_slots[organization_id] = lowest
            lowest -= 1
        return None if lowest < 0 else self._reserve(organization_id, lowest)

    def _is_waited_for(self, lowest: int) -> bool:
        """Whether an organization waits for slots that rows of this priority could take."""
        return any(priority <= lowest for priority in self._waiting_for_slots.values())

    def _reserve(self, organization_id: UUID, lowest: int) -> Turn:
        slots_max = self.batch_rows if self._is_alone(organization_id) else self._slots_of_turn
        turn = Turn(lowest, min(slots_max, self._free_slots(lowest)))
        self._used_slots[lowest] += turn.slots
        return turn

    def _slots_min(self, organization_id: UUID, lowest: int) -> int:
        """Return how many slots must be free for a pass. If other organizations use slots, each waits for all slots of
        a turn, so that all get equally many; urgent rows wait for one slot only."""
        if lowest < len(self.reserved_slots) or self._is_alone(organization_id):
            return 1
        return self._slots_of_turn

    @property
    def _slots_of_turn(self) -> int:
        """The slots of one turn: at most a quarter of all, so that even a queue with few slots serves several
        organizations at a time."""
        slots = self.at_once_max - sum(self.reserved_slots)
        return max(1, min(self.turn_slots, self.batch_rows, slots // 4))

    def _is_alone(self, organization_id: UUID) -> bool:
        """Whether no other organization has calls running or waits for slots."""
        return all(len(users) == (organization_id in users) for users in (self._calls, self._waiting_for_slots))

    def _wake_later(self, database: Database, organization_id: UUID) -> None:
        def wake() -> None:
            del self._timers[organization_id]
            database.notify_committed([(self.name, organization_id)])

        wait_s = self.wake_after_s.pop(organization_id, None)
        if wait_s is not None and organization_id not in self._timers:
            self._timers[organization_id] = asyncio.get_running_loop().call_later(wait_s, wake)

    async def _claim_and_act(self, database: Database, organization_id: UUID, *, limit: int, lowest: int) -> bool:
        # Read before the transaction begins: the claim's deadline counts from that time, and the commit may take long.
        act_until = monotonic() + self.claim_for.total_seconds() - COMPLETE_S
        async with database.transaction() as tx:
            until = tx.now + self.claim_for
            claims = await self.claim(tx, organization_id, limit=limit, lowest=lowest, owner=self.owner, until=until)
        for claim in claims:
            task = asyncio.create_task(self._act(database, organization_id, claim, act_until=act_until))
            self._acting.add(task)
            priority = self.priority_of(claim)
            self._used_slots[priority] += 1
            self._calls[organization_id] += 1
            task.add_done_callback(partial(self._end_call, database, organization_id, priority))
        return len(claims) == limit

    def _end_call(self, database: Database, organization_id: UUID, priority: int, task: asyncio.Task[bool]) -> None:
        self._acting.discard(task)
        self._used_slots[priority] -= 1
        self._calls[organization_id] -= 1
        if not self._calls[organization_id]:
            del self._calls[organization_id]
        if task.cancelled() or not task.result():
            self._wake_waiting(database)

    def _wake_waiting(self, database: Database) -> None:
        """Reserve free slots for the waiting organizations, in the order of their waiting time, and wake them."""
        woken: list[tuple[str, UUID]] = []
        # A priority without enough free slots, and lower ones, get none in this call. Thousands may wait, so the loop
        # ends as soon as no waiting organization could be woken.
        most_urgent = min(self._waiting_for_slots.values(), default=0)
        full = len(self.reserved_slots) + 1
        for organization_id, priority in list(self._waiting_for_slots.items()):
            if priority >= full:
                continue
            if self._free_slots(priority) >= self._slots_min(organization_id, priority):
                del self._waiting_for_slots[organization_id]
                self._turns[organization_id] = self._reserve(organization_id, priority)
                woken.append((self.name, organization_id))
                continue
            full = priority
            if most_urgent >= full:
                break
        database.notify_committed(woken)

    async def finish(self) -> None:
        while self._acting or self._completing:
            await asyncio.gather(*self._acting, *self._completing.values(), return_exceptions=True)

    async def _act(self, database: Database, organization_id: UUID, claim: Claim, *, act_until: float) -> bool:
        """Make the call and queue its outcome to be stored; return whether there is an outcome."""
        try:
            outcome = await self._act_in_time(organization_id, claim, until=act_until)
        except Exception as error:  # noqa: BLE001  # the claim lapses, and the row is tried again
            log_queue_error("work.act_failed", self.name, organization_id, error)
            return False
        self._outcomes.setdefault(organization_id, []).append((claim, outcome))
        if organization_id not in self._completing:
            task = asyncio.create_task(self._complete_all(database, organization_id))
            self._completing[organization_id] = task
        return True

    async def _act_in_time(self, organization_id: UUID, claim: Claim, *, until: float) -> Outcome:
        left_s = until - monotonic()
        if left_s <= 0:
            raise TimeoutError
        async with asyncio.timeout(left_s):
            return await self.act(organization_id, claim)

    async def _complete_all(self, database: Database, organization_id: UUID) -> None:
        """Store the outcomes; those that arrive during a commit share the next transaction."""
        try:
            while done := self._outcomes.pop(organization_id, []):
                try:
                    await self._complete_in_time(database, organization_id, done)
                except Exception as error:  # noqa: BLE001  # the claims lapse, and the rows are tried again
                    log_queue_error("work.settle_failed", self.name, organization_id, error)
                    self._wake_waiting(database)
        finally:
            del self._completing[organization_id]

    async def _complete_in_time(
        self, database: Database, organization_id: UUID, done: Sequence[tuple[Claim, Outcome]]
    ) -> None:
        """Store the outcomes; retry until the claims lapse, so that none is lost while the database is unreachable.

        If the connection is lost during a commit, the commit may have happened. A second attempt then finds rows that
        are no longer claimed, and writes nothing. After the deadline each remaining part is tried once more, because a
        part may never have been tried separately.
        """
        until = monotonic() + self.claim_for.total_seconds()
        # Outcomes that share a transaction; a part that waits for a lock is split.
        parts = [done]
        failure: Exception | None = None
        while parts:
            part = parts.pop(0)
            try:
                await self._complete_part(database, organization_id, part)
            except CONNECTION_ERRORS as error:
                if monotonic() >= until:
                    failure = error
                    continue
                _log.warning("work.settle_again", queue=self.name, error=type(error).__name__, outcomes=len(part))
                middle = len(part) // 2
                if isinstance(error, BLOCKED_ERRORS) and middle:
                    parts = [part[:middle], part[middle:], *parts]
                    continue
                parts.append(part)
                await asyncio.sleep(COMPLETE_RETRY_S)
        if failure is not None:
            raise failure

    async def _complete_part(
        self, database: Database, organization_id: UUID, done: Sequence[tuple[Claim, Outcome]]
    ) -> None:
        async with database.transaction() as tx:
            await self.complete(tx, organization_id, done)
            if self._waiting_for_slots:
                # The organization may have more due rows, and now waits behind the other organizations.
                self._waiting_for_slots.setdefault(organization_id, len(self.reserved_slots))
            else:
                tx.queues_to_wake.add((self.name, organization_id))
        # The calls have ended, so their slots are free.
        self._wake_waiting(database)
