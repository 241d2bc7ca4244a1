"""The quick try: one statement for what it can decide of a batch, where the route has one."""

from collections.abc import Awaitable, Callable, Hashable
from uuid import UUID

import psycopg
from psycopg.errors import DeadlockDetected, LockNotAvailable

from regulars.http.in_flight import InFlight, Pending
from regulars.http.route import MakeAnswer, Mutation, Quick
from regulars.kit.clock import monotonic

ALONE_S = 1.0
QUEUES_ALONE_MAX = 10_000

# The statement wrote nothing; the careful way finds out why.
_REFUSED = (psycopg.DataError, psycopg.IntegrityError, DeadlockDetected, LockNotAvailable)


class QuickTry:
    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self._alone_until: dict[Hashable, float] = {}

    def goes_alone(self, queue: Hashable) -> bool:
        """Whether the writes of this queue had better not share a statement for now."""
        return self._alone_until.get(queue, 0.0) > monotonic()

    async def answer(
        self,
        route: Mutation,
        quick: Quick,
        organization_id: UUID,
        batch: list[Pending],
        *,
        queue: Hashable,
        otherwise: Callable[[list[Pending]], Awaitable[None]],
    ) -> list[Pending]:
        """Answer what one statement can decide; give back the rest."""
        able = [pending for pending in batch if pending.refusal is None]
        rest = [pending for pending in batch if pending.refusal is not None]
        if not able:
            return rest
        try:
            return [*rest, *await self._try(quick, organization_id, able)]
        except _REFUSED:
            if len(able) == 1 or not route.tries_alone:
                return batch
        # Where requests come again, more will: their neighbours had better not share a statement with them.
        if len(self._alone_until) >= QUEUES_ALONE_MAX:
            self._alone_until.clear()
        self._alone_until[queue] = monotonic() + ALONE_S
        for pending in able:
            if not await self._is_answered_alone(quick, organization_id, pending):
                # Now, and not with the rest: those that came after it must not overtake it.
                await otherwise([pending])
        return rest

    async def _try(self, quick: Quick, organization_id: UUID, batch: list[Pending]) -> list[Pending]:
        answers = await quick(organization_id, [pending.write for pending in batch])
        rest: list[Pending] = []
        written: list[tuple[Pending, MakeAnswer]] = []
        for pending, answer in zip(batch, answers, strict=True):
            if answer is None:
                rest.append(pending)
            else:
                written.append((pending, answer))
        self._in_flight.settle(written)
        return rest

    async def _is_answered_alone(self, quick: Quick, organization_id: UUID, pending: Pending) -> bool:
        try:
            return not await self._try(quick, organization_id, [pending])
        except _REFUSED:
            return False
