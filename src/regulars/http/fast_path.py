"""The fast path of writes: run a batch of one queue with one statement, if its route has one, and return the writes
that the statement did not commit. Batches that several organizations share are in `in_flight`."""

from collections.abc import Awaitable, Callable
from functools import partial
from uuid import UUID

from psycopg.errors import QueryCanceled

from regulars.http.in_flight import InFlight, QueueKey, split_written
from regulars.http.request import Request
from regulars.http.route import RunFast, WriteRoute
from regulars.kit import failpoint
from regulars.kit.db import REFUSED_ERRORS


async def run(
    in_flight: InFlight,
    route: WriteRoute,
    run_fast: RunFast,
    batch: list[Request],
    *,
    queue: QueueKey,
    fallback: Callable[[list[Request]], Awaitable[None]],
) -> list[Request]:
    """Run the batch as one statement; respond to the committed writes, and return the uncommitted ones. If the
    statement fails, writes are tried one by one, and a write that fails again is passed to `fallback`."""
    run_once = partial(_run_once, in_flight, route, run_fast, queue[0])
    eligible = [request for request in batch if request.refusal is None]
    remaining = [request for request in batch if request.refusal is not None]
    if not eligible:
        return remaining
    try:
        remaining += await run_once(eligible)
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
        try:
            unwritten = await run_once([request])
        except REFUSED_ERRORS:
            unwritten = [request]
        if unwritten:
            # The write runs now, before the remaining ones, because later writes must not overtake it.
            await fallback(unwritten)
    return remaining


async def _run_once(
    in_flight: InFlight, route: WriteRoute, run_fast: RunFast, organization_id: UUID, batch: list[Request]
) -> list[Request]:
    failpoint.hit("write.before_commit")
    encoders = await run_fast(organization_id, batch)
    failpoint.hit("write.committed")
    unwritten: list[Request] = []
    in_flight.complete(split_written(batch, encoders, unwritten), status=route.fast_status)
    return unwritten
