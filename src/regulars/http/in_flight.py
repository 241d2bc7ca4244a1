"""The writes of the API that have no response yet: their queues, the batches that organizations share, their deadlines
and their idempotency keys.

Small batches of several organizations may share one statement. If it fails, nothing was written and the cause is
unknown: each batch is tried again by itself, and a queue that fails again is excluded from shared batches for some
seconds. Batches of a single queue are passed to `flush` (`writes.py`).

Every write gets a response in time: after its deadline it is refused, even if its batch is running; if it is still in
its queue, it is not run any more.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from itertools import takewhile
from typing import Final
from uuid import UUID

import msgspec
from psycopg.errors import QueryCanceled

from regulars.http.problem import problem_response
from regulars.http.request import ApiResponse, EncodeBody, Request
from regulars.http.route import Route, WriteRoute
from regulars.idempotency.errors import IdempotencyInProgress
from regulars.idempotency.model import is_stored
from regulars.kit import failpoint, log
from regulars.kit.clock import monotonic
from regulars.kit.coalesce import Coalescer
from regulars.kit.db import CONNECTION_ERRORS, REFUSED_ERRORS, Database
from regulars.kit.errors import ApiError, InternalError, Unavailable
from regulars.kit.metrics import PROCESS_METRICS

# A request gets its response this long after its last byte at the latest.
REQUEST_S = 9.0
CHECK_LATE_EVERY_S = 0.25
# How long a request waits for another request with the same idempotency key.
WAIT_FOR_SAME_KEY_S = 8.0
# The pause before another attempt while another process has locked the idempotency key.
RETRY_KEY_AFTER_S = 0.05
# How long each mark of a queue lasts after the last reason for it.
UNBATCHED_S = 1.0
UNSHARED_S = 10.0
SKIPPED_S = 1.0
# If the statement commits nothing of a batch of at least this size, the fast path is skipped for the queue.
DUPLICATES_MIN = 24
STORED_NOTE = "This answer is kept for its Idempotency-Key; send a corrected request with a new one."

_log = log.get(__name__)

# The organization, the operation (its route), and the number of one of its queues in that organization.
QueueKey = tuple[UUID, str, int]
# A write with its response, or with the function for the body of its response.
Result = tuple[Request, ApiResponse | EncodeBody]


class QueueMarks:
    """Queues that are treated in another way until some seconds after the last reason for it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # Each marked queue with the timer that ends its mark.
        self.queues: Final[dict[Hashable, asyncio.TimerHandle]] = {}

    def add(self, queue: Hashable) -> None:
        earlier = self.queues.get(queue)
        if earlier is not None:
            earlier.cancel()
        self.queues[queue] = asyncio.get_running_loop().call_later(self._seconds, self.queues.pop, queue)


class InFlight:
    """All writes of this process without a response. There is one object per process."""

    def __init__(
        self,
        database: Database,
        routes: Sequence[Route],
        *,
        flush: Callable[[QueueKey, list[Request]], Awaitable[None]],
        describe_outage: Callable[[BaseException], str],
    ) -> None:
        self._database = database
        self._routes = {route.operation_id: route for route in routes if isinstance(route, WriteRoute)}
        self._describe_outage = describe_outage
        self._arrivals = 0
        self.batch_sizes: Final = {name: PROCESS_METRICS.batch_sizes(name) for name in self._routes}
        # Queues whose writes run one by one for a while, after a failed batch; other queues run batches.
        self.unbatched: Final = QueueMarks(UNBATCHED_S)
        # Queues whose batches share no statement with other organizations for a while.
        self.unshared: Final = QueueMarks(UNSHARED_S)
        # Queues for which the fast path is skipped for a while, because their last batch had only duplicates.
        self.skipped: Final = QueueMarks(SKIPPED_S)
        self.coalescer: Final[Coalescer[QueueKey, Request]] = Coalescer(
            flush,
            items_max=self._writes_per_batch,
            wait_s_max=lambda queue: self._routes[queue[1]].wait_s_max,
            shared_as=self._shared_as,
            flush_together=self._flush_together,
        )
        # A dictionary as an ordered set: the oldest write first.
        self._waiting: dict[Request, None] = {}
        self._keys: dict[tuple[UUID, str], Request] = {}
        self._late_timer: asyncio.TimerHandle | None = None

    def find_queue(self, route: WriteRoute, request: Request) -> QueueKey:
        """Return the queue for a write, or raise if the queue is full; called before the body is decoded. Several
        queues of a route take turns."""
        queue = (request.caller.organization_id, route.operation_id, self._arrivals % route.parallel_batches)
        if not self.coalescer.has_room(queue, size=len(request.body)):
            raise Unavailable("Too much is waiting to be written; try again.")
        return queue

    def add(self, queue: QueueKey, request: Request) -> None:
        """Queue a write in the queue that `find_queue` returned. Its idempotency key is not in flight."""
        self.coalescer.add(queue, request, size=len(request.body))
        self._arrivals += 1
        self._waiting[request] = None
        if self._late_timer is None:
            self._late_timer = asyncio.get_running_loop().call_later(CHECK_LATE_EVERY_S, self._refuse_late)
        if request.key is not None:
            self._keys[request.caller.organization_id, request.key] = request

    def add_again(self, request: Request) -> None:
        """Queue the write again after a pause, during which it uses no connection, because another process has locked
        its idempotency key; refuse it after its time limit."""
        if monotonic() - request.arrived_at >= WAIT_FOR_SAME_KEY_S:
            self.refuse([request], in_progress())
        else:
            asyncio.get_running_loop().call_later(RETRY_KEY_AFTER_S, self._add_again_now, request)

    def _add_again_now(self, request: Request) -> None:
        if request.response is None:
            try:
                self.add(self.find_queue(request.route, request), request)
            except Unavailable as error:
                self.refuse([request], error)

    def has_key(self, organization_id: UUID, key: str) -> bool:
        return (organization_id, key) in self._keys

    async def wait_for_key(self, request: Request) -> Request | None:
        """Wait while the key is in flight in this process, without a database connection.

        Return the write whose response was stored for the key, or None if no response was stored.
        """
        key_of_organization = (request.caller.organization_id, request.key or "")
        deadline = monotonic() + WAIT_FOR_SAME_KEY_S
        while (earlier := self._keys.get(key_of_organization)) is not None:
            if earlier.response is None:
                earlier.completed = earlier.completed or asyncio.Event()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(earlier.completed.wait(), max(0.0, deadline - monotonic()))
            if earlier.response is None:
                raise in_progress()
            if earlier.response.is_storable:
                return earlier
        return None

    def oldest_s(self) -> float:
        """Return the age of the oldest write without a response."""
        return next((monotonic() - request.arrived_at for request in self._waiting), 0.0)

    def _writes_per_batch(self, queue: QueueKey) -> int:
        return 1 if queue in self.unbatched.queues else self._routes[queue[1]].writes_per_batch_max

    def _shared_as(self, queue: QueueKey) -> str | None:
        """Return the operation if batches of several organizations may share a statement, else None."""
        # On a cluster organizations are on several nodes, and a commit on several nodes costs more than it saves.
        if self._database.is_cluster or queue in self.unshared.queues or queue in self.skipped.queues:
            return None
        name = queue[1]
        return None if self._routes[name].run_fast_shared is None else name

    async def _flush_together(self, queued: Sequence[tuple[QueueKey, list[Request]]]) -> list[list[Request]]:
        """Try small batches of several organizations as one statement; return the unwritten writes of each batch."""
        batches = [[request for request in batch if request.response is None] for _, batch in queued]
        waiting = [request for batch in batches for request in batch]
        if not waiting:
            # All writes waited for too long and were refused.
            return batches
        route = self._routes[queued[0][0][1]]
        self.batch_sizes[route.operation_id].observe(len(waiting))
        try:
            return await self._run_together(route, [queue for queue, _ in queued], batches)
        except Exception as error:  # noqa: BLE001  # every waiting caller gets a response
            self.refuse_failed(route, waiting, error)
            return [[] for _ in queued]

    async def _run_together(
        self, route: WriteRoute, queues: Sequence[QueueKey], batches: list[list[Request]]
    ) -> list[list[Request]]:
        """Run the batches by one statement; respond to the committed writes, and return the uncommitted ones."""
        if route.run_fast_shared is None:
            raise AssertionError("only a route with `run_fast_shared` is flushed together")
        eligible = [[request for request in batch if request.refusal is None] for batch in batches]
        if failpoint.armed:
            failpoint.hit("write.before_commit")
        try:
            body_encoders = await route.run_fast_shared(
                [(queue[0], requests) for queue, requests in zip(queues, eligible, strict=True)]
            )
        except REFUSED_ERRORS:
            for request in batches[0] if len(batches) == 1 else ():
                request.needs_fallback = True
            return batches
        except QueryCanceled:
            # One of the batches timed out or blocked another; each is run by itself to find it.
            if len(batches) == 1:
                self.unshared.add(queues[0])
                raise
            return batches
        if failpoint.armed:
            failpoint.hit("write.committed")
        written: list[Result] = []
        remaining: list[list[Request]] = []
        for queue, batch, requests, encoders in zip(queues, batches, eligible, body_encoders, strict=True):
            unwritten = [request for request in batch if request.refusal is not None]
            written += split_written(requests, encoders, unwritten)
            self.mark_skipped(queue, batch, unwritten)
            for request in unwritten:
                request.needs_fallback = True
            remaining.append(unwritten)
        self.complete(written, status=route.fast_status)
        return remaining

    def mark_skipped(self, queue: QueueKey, batch: Sequence[Request], unwritten: Sequence[Request]) -> None:
        if len(unwritten) == len(batch) >= DUPLICATES_MIN:
            self.skipped.add(queue)

    def complete(self, results: Sequence[Result], *, status: int = 200) -> None:
        """Respond in the next iteration of the event loop, so that the next batch is sent to the database first.

        `status` is the status of writes that have a function for their body in place of a response.
        """
        self._remove([request for request, _ in results])
        asyncio.get_running_loop().call_soon(_deliver, results, status)

    def refuse(self, batch: Sequence[Request], error: ApiError) -> None:
        self.complete([(request, problem_response(error, request)) for request in batch])

    def refuse_failed(self, route: WriteRoute, batch: Sequence[Request], error: Exception) -> None:
        """Refuse writes whose batch failed for a reason that none of them caused."""
        log_values = {"operation": route.operation_id, "request_ids": _ids_of(batch)}
        if isinstance(error, CONNECTION_ERRORS):
            # It is unknown whether the commit happened; the unique keys make the caller's retry safe.
            _log.warning("writes.database_unavailable", error=type(error).__name__, **log_values)
            self.refuse(batch, Unavailable(self._describe_outage(error)))
        else:
            _log.error("writes.failed", exc_info=error, **log_values)
            self.refuse(batch, InternalError("The request could not be carried out; nothing was written."))

    def give_up(self, late: Sequence[Request]) -> None:
        """Refuse these writes at once; those that are still in their queue are not run any more."""
        self._remove(late)
        _deliver([(request, problem_response(too_late(), request)) for request in late])

    def _refuse_late(self) -> None:
        """Refuse the writes that have waited too long, and check again while any write waits."""
        arrived_before = monotonic() - REQUEST_S
        late = list(takewhile(lambda request: request.arrived_at <= arrived_before, self._waiting))
        if late:
            _log.warning("writes.late", request_ids=_ids_of(late))
            self.give_up(late)
        self._late_timer = (
            asyncio.get_running_loop().call_later(CHECK_LATE_EVERY_S, self._refuse_late) if self._waiting else None
        )

    def _remove(self, completed: Iterable[Request]) -> None:
        for request in completed:
            self._waiting.pop(request, None)
            key_of_organization = (request.caller.organization_id, request.key or "")
            # A write that was refused as late has released its key already, and another request may use the key now.
            if request.key is not None and self._keys.get(key_of_organization) is request:
                del self._keys[key_of_organization]


def split_written(
    batch: Sequence[Request], encoders: Sequence[EncodeBody | None], unwritten: list[Request]
) -> list[Result]:
    """Return the committed writes with their encoders, and append the writes without an encoder to `unwritten`."""
    written: list[Result] = []
    for request, encode_body in zip(batch, encoders, strict=True):
        if encode_body is None:
            unwritten.append(request)
        else:
            written.append((request, encode_body))
    return written


def make_response(request: Request, result: ApiResponse | ApiError) -> ApiResponse:
    """Make the response from the result of the route; it is stored if the write has a key and its status allows it."""
    is_storable = request.key is not None and is_stored(result.status)
    if isinstance(result, ApiError):
        result = problem_response(result, request, note=STORED_NOTE if is_storable else "")
    else:
        result = with_ignored_fields(request, result)
    return msgspec.structs.replace(result, is_storable=True) if is_storable else result


def with_ignored_fields(request: Request, response: ApiResponse) -> ApiResponse:
    """Add the header that names the ignored fields of the request; it is stored and replayed with the response."""
    if not getattr(request.command, "ignored", ()):
        return response
    return msgspec.structs.replace(response, headers=(*response.headers, *request.extra_headers))


def _deliver(results: Sequence[Result], status: int = 200) -> None:
    for request, result in results:
        try:
            respond(request, result, status=status)
        except Exception:  # noqa: BLE001  # the write is committed, and the other callers need their response
            _log.exception("writes.caller_not_told", request_id=request.request_id)


def respond(request: Request, result: ApiResponse | EncodeBody, *, status: int = 200) -> None:
    """Make and send the response, unless the request has one."""
    if request.response is None:
        response = result if isinstance(result, ApiResponse) else _encode(request, status, result)
        request.response = response
        # Set before `send`, so that an error in `send` leaves no other request waiting.
        if request.completed is not None:
            request.completed.set()
        request.send(request, response)


def _encode(request: Request, status: int, encode_body: EncodeBody) -> ApiResponse:
    """Make the response to a committed write from the function for its body."""
    is_storable = request.key is not None and is_stored(status)
    headers = request.extra_headers if getattr(request.command, "ignored", ()) else ()
    try:
        return ApiResponse(status, encode_body(), headers, is_storable=is_storable)
    except Exception:  # noqa: BLE001  # the caller must get a response, and may retry
        _log.exception("writes.answer_not_made", request_id=request.request_id)
        return problem_response(
            InternalError("The request was carried out, but its answer could not be made; send it again."), request
        )


def _ids_of(batch: Sequence[Request]) -> list[str]:
    return [request.request_id for request in batch]


def in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress("The first request with this Idempotency-Key has not finished; try again.")


def too_late() -> Unavailable:
    return Unavailable("The request could not be carried out in time; try again.")
