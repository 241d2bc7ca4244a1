"""The fast path of writes: run a batch with one statement, if its route has one, and return the writes that the
statement did not commit.

Small batches of several organizations may share one transaction. If it fails, nothing was written and the cause is
unknown: each batch is tried again by itself, and a queue that fails again is excluded from shared transactions for some
seconds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final
from uuid import UUID

from psycopg.errors import QueryCanceled

from regulars.http.in_flight import InFlight, Pending
from regulars.http.request import EncodeBody
from regulars.http.route import RunFast, RunFastShared, WriteRoute
from regulars.kit import failpoint
from regulars.kit.db import REFUSED_ERRORS

# How long each mark of `FastPath` lasts after the last reason for it.
UNBATCHED_S = 1.0
UNSHARED_S = 10.0
SKIPPED_S = 1.0
# If the statement commits nothing of a batch of at least this size, the fast path is skipped for the queue.
DUPLICATES_MIN = 24

# The organization, the operation (its route), and the number of one of its queues in that organization.
QueueKey = tuple[UUID, str, int]


class QueueMarks:
    """Queues that are treated in another way until some seconds after the last reason for it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._releases: dict[Hashable, asyncio.TimerHandle] = {}

    def __contains__(self, queue: Hashable) -> bool:
        return queue in self._releases

    def add(self, queue: Hashable) -> None:
        earlier = self._releases.get(queue)
        if earlier is not None:
            earlier.cancel()
        self._releases[queue] = asyncio.get_running_loop().call_later(self._seconds, self._releases.pop, queue)


class FastPath:
    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        # Queues whose writes run one by one for a while, after a failed batch; other queues run batches.
        self.unbatched: Final = QueueMarks(UNBATCHED_S)
        # Queues whose batches share no transaction with other organizations for a while.
        self.unshared: Final = QueueMarks(UNSHARED_S)
        # Queues for which the fast path is skipped for a while, because their last batch had only duplicates.
        self.skipped: Final = QueueMarks(SKIPPED_S)

    async def run_together(
        self, route: WriteRoute, run_fast: RunFastShared, batches: Sequence[tuple[QueueKey, list[Pending]]]
    ) -> list[list[Pending]]:
        """Run the batches in one transaction; respond to the committed writes, and return the uncommitted ones."""
        eligible = [[pending for pending in batch if pending.refusal is None] for _, batch in batches]
        remaining = [[pending for pending in batch if pending.refusal is not None] for _, batch in batches]
        organizations = [queue[0] for queue, _ in batches]
        writes = [[pending.write for pending in batch] for batch in eligible]
        failpoint.hit("write.before_commit")
        try:
            body_encoders = await run_fast(list(zip(organizations, writes, strict=True)))
        except REFUSED_ERRORS:
            for pending in batches[0][1] if len(batches) == 1 else ():
                pending.needs_fallback = True
            return [batch for _, batch in batches]
        except QueryCanceled:
            # One of the batches timed out or blocked another; the caller runs each batch by itself to find it.
            if len(batches) == 1:
                self.unshared.add(batches[0][0])
                raise
            return [batch for _, batch in batches]
        failpoint.hit("write.committed")
        written: list[tuple[Pending, EncodeBody]] = []
        for (queue, batch), tried, encoders, unwritten in zip(batches, eligible, body_encoders, remaining, strict=True):
            written += _split_written(tried, encoders, unwritten)
            self._mark_skipped(queue, batch, unwritten)
            for pending in unwritten:
                pending.needs_fallback = True
        self._in_flight.complete(written, status=route.fast_status)
        return remaining

    async def run(
        self,
        route: WriteRoute,
        run_fast: RunFast,
        organization_id: UUID,
        batch: list[Pending],
        *,
        queue: Hashable,
        fallback: Callable[[list[Pending]], Awaitable[None]],
    ) -> list[Pending]:
        """Run the batch as one statement; respond to the committed writes, and return the uncommitted ones. If the
        statement fails, writes are tried one by one, and a write that fails again is passed to `fallback`."""
        eligible = [pending for pending in batch if pending.refusal is None]
        remaining = [pending for pending in batch if pending.refusal is not None]
        if not eligible:
            return remaining
        try:
            remaining += await self._try(route, run_fast, organization_id, eligible)
        except REFUSED_ERRORS:
            self.unshared.add(queue)
            if len(eligible) == 1 or not route.retries_singly:
                return batch
        except QueryCanceled:
            self.unshared.add(queue)
            raise
        else:
            self._mark_skipped(queue, batch, remaining)
            return remaining
        # A queue with one retried request usually gets more, so its writes share no statement for a second.
        self.unbatched.add(queue)
        for pending in eligible:
            if not await self._is_written_singly(route, run_fast, organization_id, pending):
                # The write runs now, before the remaining ones, because later writes must not overtake it.
                await fallback([pending])
        return remaining

    def _mark_skipped(self, queue: Hashable, batch: Sequence[Pending], unwritten: Sequence[Pending]) -> None:
        if len(unwritten) == len(batch) >= DUPLICATES_MIN:
            self.skipped.add(queue)

    async def _try(
        self, route: WriteRoute, run_fast: RunFast, organization_id: UUID, batch: list[Pending]
    ) -> list[Pending]:
        failpoint.hit("write.before_commit")
        encoders = await run_fast(organization_id, [pending.write for pending in batch])
        failpoint.hit("write.committed")
        unwritten: list[Pending] = []
        self._in_flight.complete(_split_written(batch, encoders, unwritten), status=route.fast_status)
        return unwritten

    async def _is_written_singly(
        self, route: WriteRoute, run_fast: RunFast, organization_id: UUID, pending: Pending
    ) -> bool:
        try:
            return not await self._try(route, run_fast, organization_id, [pending])
        except REFUSED_ERRORS:
            return False


def _split_written(
    batch: Sequence[Pending], encoders: Sequence[EncodeBody | None], unwritten: list[Pending]
) -> list[tuple[Pending, EncodeBody]]:
    """Return the committed writes with their encoders, and append the writes without an encoder to `unwritten`."""
    written: list[tuple[Pending, EncodeBody]] = []
    for pending, encode_body in zip(batch, encoders, strict=True):
        if encode_body is None:
            unwritten.append(pending)
        else:
            written.append((pending, encode_body))
    return written
