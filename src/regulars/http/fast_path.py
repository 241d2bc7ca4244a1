"""Run a batch of writes with one statement, on routes that have one, and return the writes that it did not handle.

Small batches of several organizations may share one transaction. If that fails, nothing was written and the cause is
unknown: each batch is tried again by itself, and a queue that fails again is excluded from shared transactions for some
seconds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from uuid import UUID

from psycopg.errors import QueryCanceled

from regulars.http.in_flight import InFlight, Pending
from regulars.http.route import MakeBody, Quick, QuickTogether, WriteRoute
from regulars.kit import failpoint
from regulars.kit.db import REFUSED_ERRORS

# How long a queue stays in the sets `alone`, `apart` and `repeating` below.
ALONE_S = 1.0
APART_S = 10.0
REPEATING_S = 1.0
# If the statement writes none of a batch of at least this size, the fast path is skipped for the queue.
REPEATS_MIN = 24

# The organization, the operation (its route), and the number of one of its queues in that organization.
QueueKey = tuple[UUID, str, int]


class FastPath:
    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        # Queues whose writes run one by one for a while, after a failed batch.
        self.alone: set[Hashable] = set()
        # Queues whose batches share no transaction with other organizations for a while.
        self.apart: set[Hashable] = set()
        # Queues whose recent fast-path attempts were all duplicates; skip the fast path for them.
        self.repeating: set[Hashable] = set()

    async def run_together(
        self, route: WriteRoute, quick: QuickTogether, batches: Sequence[tuple[QueueKey, list[Pending]]]
    ) -> list[list[Pending]]:
        """Run the batches in one transaction; respond to the committed writes, and return the others of each batch."""
        eligible = [[pending for pending in batch if pending.refusal is None] for _, batch in batches]
        remaining = [[pending for pending in batch if pending.refusal is not None] for _, batch in batches]
        organizations = [queue[0] for queue, _ in batches]
        writes = [[pending.write for pending in batch] for batch in eligible]
        failpoint.hit("write.before_commit")
        try:
            made_bodies = await quick(list(zip(organizations, writes, strict=True)))
        except REFUSED_ERRORS:
            for pending in batches[0][1] if len(batches) == 1 else ():
                pending.needs_fallback = True
            return [batch for _, batch in batches]
        except QueryCanceled:
            # One of the batches timed out or blocked another; running each one alone shows which.
            if len(batches) == 1:
                _mark_for(self.apart, batches[0][0], APART_S)
                raise
            return [batch for _, batch in batches]
        failpoint.hit("write.committed")
        written: list[tuple[Pending, MakeBody]] = []
        for (queue, batch), sent, bodies, unwritten in zip(batches, eligible, made_bodies, remaining, strict=True):
            written += _split_written(sent, bodies, unwritten)
            self._mark_repeating(queue, batch, unwritten)
            for pending in unwritten:
                pending.needs_fallback = True
        self._in_flight.complete(written, status=route.quick_status)
        return remaining

    async def run(
        self,
        route: WriteRoute,
        quick: Quick,
        organization_id: UUID,
        batch: list[Pending],
        *,
        queue: Hashable,
        fallback: Callable[[list[Pending]], Awaitable[None]],
    ) -> list[Pending]:
        """Run the batch as one statement and respond to the writes it committed; return the others. If the statement
        fails, writes are tried one by one, and one that fails again is passed to `fallback`."""
        eligible = [pending for pending in batch if pending.refusal is None]
        remaining = [pending for pending in batch if pending.refusal is not None]
        if not eligible:
            return remaining
        try:
            remaining += await self._try(route, quick, organization_id, eligible)
        except REFUSED_ERRORS:
            _mark_for(self.apart, queue, APART_S)
            if len(eligible) == 1 or not route.tries_alone:
                return batch
        except QueryCanceled:
            _mark_for(self.apart, queue, APART_S)
            raise
        else:
            self._mark_repeating(queue, batch, remaining)
            return remaining
        # A queue with one retried request usually gets more, so its writes share no statement for a second.
        _mark_for(self.alone, queue, ALONE_S)
        for pending in eligible:
            if not await self._is_written_alone(route, quick, organization_id, pending):
                # The write runs now, before the remaining ones, because later writes must not overtake it.
                await fallback([pending])
        return remaining

    def _mark_repeating(self, queue: Hashable, batch: Sequence[Pending], unwritten: Sequence[Pending]) -> None:
        if len(unwritten) == len(batch) >= REPEATS_MIN:
            _mark_for(self.repeating, queue, REPEATING_S)

    async def _try(self, route: WriteRoute, quick: Quick, organization_id: UUID, batch: list[Pending]) -> list[Pending]:
        failpoint.hit("write.before_commit")
        bodies = await quick(organization_id, [pending.write for pending in batch])
        failpoint.hit("write.committed")
        unwritten: list[Pending] = []
        self._in_flight.complete(_split_written(batch, bodies, unwritten), status=route.quick_status)
        return unwritten

    async def _is_written_alone(self, route: WriteRoute, quick: Quick, organization_id: UUID, pending: Pending) -> bool:
        try:
            return not await self._try(route, quick, organization_id, [pending])
        except REFUSED_ERRORS:
            return False


def _split_written(
    batch: Sequence[Pending], bodies: Sequence[MakeBody | None], unwritten: list[Pending]
) -> list[tuple[Pending, MakeBody]]:
    """Return the writes that were committed, and append the others to `unwritten`."""
    written: list[tuple[Pending, MakeBody]] = []
    for pending, make_body in zip(batch, bodies, strict=True):
        if make_body is None:
            unwritten.append(pending)
        else:
            written.append((pending, make_body))
    return written


def _mark_for(queues: set[Hashable], queue: Hashable, seconds: float) -> None:
    if queue not in queues:
        queues.add(queue)
        asyncio.get_running_loop().call_later(seconds, queues.discard, queue)
