"""The quick try: one statement for what it can decide of a batch, where the route has one.

Small batches of several organizations may be tried together, in one transaction. If that is refused, nobody knows whose
fault it was and nothing was written: each is tried again by itself, and one that is refused then too stays apart from
the others for a while.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from uuid import UUID

from psycopg.errors import QueryCanceled

from regulars.http.in_flight import InFlight, Pending
from regulars.http.route import MakeBody, Mutation, Quick, QuickTogether
from regulars.kit import failpoint
from regulars.kit.db import REFUSED_ERRORS

ALONE_S = 1.0
APART_S = 10.0
# Of so many that are left over none is worth a try for a while.
REPEATS_MIN = 24
REPEATING_S = 1.0

# The organization, the operation, and one of the queues it has for that organization.
QueueKey = tuple[UUID, str, int]


class QuickTry:
    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        # Queues whose writes had better not share a statement for now.
        self.alone: set[Hashable] = set()
        # Queues that had better not share a transaction with those of other organizations for now.
        self.apart: set[Hashable] = set()
        # Queues of which nothing came of a try lately: what comes there has come before.
        self.repeating: set[Hashable] = set()

    async def answer_together(
        self, route: Mutation, quick: QuickTogether, batches: Sequence[tuple[QueueKey, list[Pending]]]
    ) -> list[list[Pending]]:
        """Answer what one transaction can decide of several queues' batches; give back the rest of each."""
        able = [[pending for pending in batch if pending.refusal is None] for _, batch in batches]
        rest = [[pending for pending in batch if pending.refusal is not None] for _, batch in batches]
        organizations = [queue[0] for queue, _ in batches]
        writes = [[pending.write for pending in some] for some in able]
        failpoint.hit("write.before_commit")
        try:
            made = await quick(list(zip(organizations, writes, strict=True)))
        except REFUSED_ERRORS:
            for pending in batches[0][1] if len(batches) == 1 else ():
                pending.is_for_the_careful_way = True
            return [batch for _, batch in batches]
        except QueryCanceled:
            # One of them took too long, or was in the way of somebody; it will be known when it is alone.
            if len(batches) == 1:
                _set_aside(self.apart, batches[0][0], APART_S)
                raise
            return [batch for _, batch in batches]
        failpoint.hit("write.committed")
        written: list[tuple[Pending, MakeBody]] = []
        for (queue, batch), some, bodies, left in zip(batches, able, made, rest, strict=True):
            written += _sort_out(some, bodies, left)
            self._note_repeats(queue, batch, left)
            for pending in left:
                pending.is_for_the_careful_way = True
        self._in_flight.settle(written, status=route.quick_status)
        return rest

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
            rest += await self._try(route, quick, organization_id, able)
        except REFUSED_ERRORS:
            _set_aside(self.apart, queue, APART_S)
            if len(able) == 1 or not route.tries_alone:
                return batch
        except QueryCanceled:
            _set_aside(self.apart, queue, APART_S)
            raise
        else:
            self._note_repeats(queue, batch, rest)
            return rest
        # Where requests come again, more will: their neighbours had better not share a statement with them.
        _set_aside(self.alone, queue, ALONE_S)
        for pending in able:
            if not await self._is_answered_alone(route, quick, organization_id, pending):
                # Now, and not with the rest: those that came after it must not overtake it.
                await otherwise([pending])
        return rest

    def _note_repeats(self, queue: Hashable, batch: Sequence[Pending], left: Sequence[Pending]) -> None:
        if len(left) == len(batch) >= REPEATS_MIN:
            _set_aside(self.repeating, queue, REPEATING_S)

    async def _try(self, route: Mutation, quick: Quick, organization_id: UUID, batch: list[Pending]) -> list[Pending]:
        failpoint.hit("write.before_commit")
        bodies = await quick(organization_id, [pending.write for pending in batch])
        failpoint.hit("write.committed")
        rest: list[Pending] = []
        self._in_flight.settle(_sort_out(batch, bodies, rest), status=route.quick_status)
        return rest

    async def _is_answered_alone(self, route: Mutation, quick: Quick, organization_id: UUID, pending: Pending) -> bool:
        try:
            return not await self._try(route, quick, organization_id, [pending])
        except REFUSED_ERRORS:
            return False


def _sort_out(
    batch: Sequence[Pending], bodies: Sequence[MakeBody | None], rest: list[Pending]
) -> list[tuple[Pending, MakeBody]]:
    """Those that were written; the others are put to the rest."""
    written: list[tuple[Pending, MakeBody]] = []
    for pending, make_body in zip(batch, bodies, strict=True):
        if make_body is None:
            rest.append(pending)
        else:
            written.append((pending, make_body))
    return written


def _set_aside(queues: set[Hashable], queue: Hashable, seconds: float) -> None:
    if queue not in queues:
        queues.add(queue)
        asyncio.get_running_loop().call_later(seconds, queues.discard, queue)
