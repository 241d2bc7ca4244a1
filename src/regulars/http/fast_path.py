"""The fast path of writes: run a batch of one queue with one statement, if its route has one, and return the writes
that the statement did not commit. Batches that several organizations share are in `in_flight`."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from psycopg.errors import QueryCanceled

from regulars.http.in_flight import InFlight, QueueKey, split_written
from regulars.http.request import Request
from regulars.http.route import RunFast, WriteRoute
from regulars.kit import failpoint
from regulars.kit.db import REFUSED_ERRORS


class FastPath:
    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight

    async def run(
        self,
        route: WriteRoute,
        run_fast: RunFast,
        batch: list[Request],
        *,
        queue: QueueKey,
        fallback: Callable[[list[Request]], Awaitable[None]],
    ) -> list[Request]:
        """Run the batch as one statement; respond to the committed writes, and return the uncommitted ones. If the
        statement fails, writes are tried one by one, and a write that fails again is passed to `fallback`."""
        in_flight = self._in_flight
        eligible = [request for request in batch if request.refusal is None]
        remaining = [request for request in batch if request.refusal is not None]
        if not eligible:
            return remaining
        try:
            remaining += await self._try(route, run_fast, queue[0], eligible)
        except REFUSED_ERRORS:
            in_flight.unshared.add(queue)
            if len(eligible) == 1 or not route.retries_singly:
                return batch
        except QueryCanceled:
            in_flight.unshared.add(queue)
            raise
        else:
            in_flight.mark_skipped(queue, batch, remaining)
            return remaining
        # A queue with one retried request usually gets more, so its writes share no statement for a second.
        in_flight.unbatched.add(queue)
        for request in eligible:
            if not await self._is_written_singly(route, run_fast, queue[0], request):
                # The write runs now, before the remaining ones, because later writes must not overtake it.
                await fallback([request])
        return remaining

    async def _try(
        self, route: WriteRoute, run_fast: RunFast, organization_id: UUID, batch: list[Request]
    ) -> list[Request]:
        failpoint.hit("write.before_commit")
        encoders = await run_fast(organization_id, batch)
        failpoint.hit("write.committed")
        unwritten: list[Request] = []
        self._in_flight.complete(split_written(batch, encoders, unwritten), status=route.fast_status)
        return unwritten

    async def _is_written_singly(
        self, route: WriteRoute, run_fast: RunFast, organization_id: UUID, request: Request
    ) -> bool:
        try:
            return not await self._try(route, run_fast, organization_id, [request])
        except REFUSED_ERRORS:
            return False
