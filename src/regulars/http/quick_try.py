"""The quick try: one statement for what it can decide of a batch, where the route has one."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from uuid import UUID

import psycopg
from psycopg.errors import DeadlockDetected, LockNotAvailable

from regulars.http.in_flight import InFlight, Pending
from regulars.http.route import MakeBody, Mutation, Quick
from regulars.kit import failpoint

ALONE_S = 1.0

# The statement wrote nothing; the careful way finds out why.
_REFUSED = (psycopg.DataError, psycopg.IntegrityError, DeadlockDetected, LockNotAvailable)


class QuickTry:
    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        # Queues whose writes had better not share a statement for now.
        self.alone: set[Hashable] = set()

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
            return [*rest, *await self._try(route, quick, organization_id, able)]
        except _REFUSED:
            if len(able) == 1 or not route.tries_alone:
                return batch
        # Where requests come again, more will: their neighbours had better not share a statement with them.
        if queue not in self.alone:
            self.alone.add(queue)
            asyncio.get_running_loop().call_later(ALONE_S, self.alone.discard, queue)
        for pending in able:
            if not await self._is_answered_alone(route, quick, organization_id, pending):
                # Now, and not with the rest: those that came after it must not overtake it.
                await otherwise([pending])
        return rest

    async def _try(self, route: Mutation, quick: Quick, organization_id: UUID, batch: list[Pending]) -> list[Pending]:
        failpoint.hit("write.before_commit")
        bodies = await quick(organization_id, [pending.write for pending in batch])
        failpoint.hit("write.committed")
        rest: list[Pending] = []
        written: list[tuple[Pending, MakeBody]] = []
        for pending, make_body in zip(batch, bodies, strict=True):
            if make_body is None:
                rest.append(pending)
            else:
                written.append((pending, make_body))
        self._in_flight.settle(written, status=route.quick_status)
        return rest

    async def _is_answered_alone(self, route: Mutation, quick: Quick, organization_id: UUID, pending: Pending) -> bool:
        try:
            return not await self._try(route, quick, organization_id, [pending])
        except _REFUSED:
            return False
