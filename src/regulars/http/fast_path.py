"""Fast path of a batch: one statement for the writes it can decide, on routes that have such a statement.

Small batches of several organizations may share one transaction. If that fails, nothing was written and the cause is
unknown: each batch is tried again by itself, and an organization that fails then too is kept out of shared transactions
for a while.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from uuid import UUID

from psycopg.errors import QueryCanceled

from regulars.http.in_flight import InFlight, Pending
from regulars.http.route import MakeBody, Quick, QuickTogether, WriteRoute
from regulars.kit import failpoint
from regulars.kit.db import REFUSED_ERRORS

ALONE_S = 1.0
APART_S = 10.0
# A batch of at least this size that was left over completely turns the fast path off for its queue for a while.
REPEATS_MIN = 24
REPEATING_S = 1.0

# The organization, the operation, and one of the queues it has for that organization.
QueueKey = tuple[UUID, str, int]


class FastPath:
    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        # Queues whose writes currently run one by one, after a failed batch.
        self.alone: set[Hashable] = set()
        # Queues whose batches currently contain no writes of other organizations.
        self.apart: set[Hashable] = set()
        # Queues whose recent fast-path attempts were all duplicates; skip the fast path for them.
        self.repeating: set[Hashable] = set()

    async def run_together(
        self, route: WriteRoute, quick: QuickTogether, batches: Sequence[tuple[QueueKey, list[Pending]]]
    ) -> list[list[Pending]]:
        """Respond to the writes that one transaction can decide; return the rest of each batch."""
        able = [[pending for pending in batch if pending.refusal is None] for _, batch in batches]
        rest = [[pending for pending in batch if pending.refusal is not None] for _, batch in batches]
        organizations = [queue[0] for queue, _ in batches]
        writes = [[pending.write for pending in some] for some in able]
        failpoint.hit("write.before_commit")
        try:
            made = await quick(list(zip(organizations, writes, strict=True)))
        except REFUSED_ERRORS:
            for pending in batches[0][1] if len(batches) == 1 else ():
                pending.needs_fallback = True
            return [batch for _, batch in batches]
        except QueryCanceled:
            # One of them timed out or blocked another; run alone, it will show which.
            if len(batches) == 1:
                _mark_for(self.apart, batches[0][0], APART_S)
                raise
            return [batch for _, batch in batches]
        failpoint.hit("write.committed")
        written: list[tuple[Pending, MakeBody]] = []
        for (queue, batch), some, bodies, left in zip(batches, able, made, rest, strict=True):
            written += _sort_out(some, bodies, left)
            self._mark_repeating(queue, batch, left)
            for pending in left:
                pending.needs_fallback = True
        self._in_flight.complete(written, status=route.quick_status)
        return rest

    async def run(
        self,
        route: WriteRoute,
        quick: Quick,
        organization_id: UUID,
        batch: list[Pending],
        *,
        queue: Hashable,
        otherwise: Callable[[list[Pending]], Awaitable[None]],
    ) -> list[Pending]:
        """Respond to the writes that one statement can decide; return the rest."""
        able = [pending for pending in batch if pending.refusal is None]
        rest = [pending for pending in batch if pending.refusal is not None]
        if not able:
            return rest
        try:
            rest += await self._try(route, quick, organization_id, able)
        except REFUSED_ERRORS:
            _mark_for(self.apart, queue, APART_S)
            if len(able) == 1 or not route.tries_alone:
                return batch
        except QueryCanceled:
            _mark_for(self.apart, queue, APART_S)
            raise
        else:
            self._mark_repeating(queue, batch, rest)
            return rest
        # A queue with retries will get more of them: its writes do not share a statement for a moment.
        _mark_for(self.alone, queue, ALONE_S)
        for pending in able:
            if not await self._is_written_alone(route, quick, organization_id, pending):
                # Now, and not with the rest: later writes must not overtake it.
                await otherwise([pending])
        return rest

    def _mark_repeating(self, queue: Hashable, batch: Sequence[Pending], left: Sequence[Pending]) -> None:
        if len(left) == len(batch) >= REPEATS_MIN:
            _mark_for(self.repeating, queue, REPEATING_S)

    async def _try(self, route: WriteRoute, quick: Quick, organization_id: UUID, batch: list[Pending]) -> list[Pending]:
        failpoint.hit("write.before_commit")
        bodies = await quick(organization_id, [pending.write for pending in batch])
        failpoint.hit("write.committed")
        rest: list[Pending] = []
        self._in_flight.complete(_sort_out(batch, bodies, rest), status=route.quick_status)
        return rest

    async def _is_written_alone(self, route: WriteRoute, quick: Quick, organization_id: UUID, pending: Pending) -> bool:
        try:
            return not await self._try(route, quick, organization_id, [pending])
        except REFUSED_ERRORS:
            return False


def _sort_out(
    batch: Sequence[Pending], bodies: Sequence[MakeBody | None], rest: list[Pending]
) -> list[tuple[Pending, MakeBody]]:
    """The writes that were committed; the others are appended to `rest`."""
    written: list[tuple[Pending, MakeBody]] = []
    for pending, make_body in zip(batch, bodies, strict=True):
        if make_body is None:
            rest.append(pending)
        else:
            written.append((pending, make_body))
    return written


def _mark_for(queues: set[Hashable], queue: Hashable, seconds: float) -> None:
    if queue not in queues:
        queues.add(queue)
        asyncio.get_running_loop().call_later(seconds, queues.discard, queue)
