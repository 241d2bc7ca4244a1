"""Run the writes of the API: each in a batch with other writes, once per idempotency key, and in one transaction with
its stored response.

This module has the queues and batches; `in_flight` has the writes that wait for their response. A batch is tried as one
statement if its route has one (`fast_path`); the remaining writes take several statements (`fallback_path`).
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from regulars.http import dry_run
from regulars.http.fallback_path import FallbackPath
from regulars.http.fast_path import FastPath, QueueKey
from regulars.http.in_flight import WAIT_FOR_SAME_KEY_S, InFlight, Pending, WriteOutcome, ids_of, in_progress
from regulars.http.large_bodies import LARGE_BYTES, LargeBodies
from regulars.http.replay import replay_response
from regulars.http.request import ApiResponse, Request, Write
from regulars.http.route import WriteRoute
from regulars.idempotency.model import fingerprint
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.coalesce import Coalescer, Overloaded
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.errors import ApiError, InternalError, Unavailable
from regulars.kit.metrics import PROCESS_METRICS
from regulars.kit.writable import describe_outage

# The pause before another attempt while another process has locked the idempotency key.
RETRY_KEY_AFTER_S = 0.05

_log = log.get(__name__)


class Writes:
    """Queues writes and runs them in batches; there is one object per process."""

    def __init__(
        self,
        database: Database,
        routes: Sequence[WriteRoute],
        *,
        erased_error: ApiError,
        describe_outage: Callable[[BaseException], str] = describe_outage,
    ) -> None:
        self._database = database
        self._routes = {route.operation_id: route for route in routes}
        self._describe_outage = describe_outage
        self._large = LargeBodies()
        self._arrivals = 0
        self._batch_sizes = {name: PROCESS_METRICS.batch_sizes(name) for name in self._routes}
        self.in_flight = InFlight()
        self._fast_path = FastPath(self.in_flight)
        self._fallback_path = FallbackPath(database, self.in_flight, erased_error=erased_error, retry=self._queue_again)
        self.coalescer: Coalescer[QueueKey, Pending] = Coalescer(
            self._flush,
            items_max=self._writes_per_batch,
            wait_s_max=lambda key: self._routes[key[1]].wait_s_max,
            shared_as=self._shared_as,
            flush_together=self._flush_together,
        )

    async def run_dry(self, route: WriteRoute, request: Request, *, charge: Callable[[int], None]) -> ApiResponse:
        """Return the response of a write that is rolled back. `charge` takes rate limit tokens after the first."""
        async with self._large.admitted(len(request.body)):
            is_large = len(request.body) > LARGE_BYTES
            command = await self._large.decode(route.prepare, request) if is_large else route.prepare(request)
            if route.cost is not None:
                charge(route.cost(command) - 1)
            return await dry_run.run_dry(self._database, route, request, command)

    async def submit(
        self,
        route: WriteRoute,
        request: Request,
        *,
        target: bytes,
        key: str | None,
        refusal: ApiError | None = None,
        charge: Callable[[int], None],
    ) -> ApiResponse:
        """Run one write and return its response. `refusal` is an error that was already found in the request. `charge`
        takes tokens of the rate limit after the first."""
        self.find_queue(route, request)
        async with self._large.admitted(len(request.body)):
            command = None
            if refusal is None:
                try:
                    is_large = len(request.body) > LARGE_BYTES
                    command = await self._large.decode(route.prepare, request) if is_large else route.prepare(request)
                except ApiError as error:
                    refusal = error
            if refusal is None and route.cost is not None:
                charge(route.cost(command) - 1)
            if key is None:
                if refusal is not None:
                    raise refusal
                return (await self._enqueue(route, Write(request, command), None)).response
            is_ingest_only = request.caller.is_ingest_only
            request_hash = fingerprint(route.method, target, request.body, is_ingest_only=is_ingest_only)
            write = Write(request, command, key, request_hash)
            earlier = await self.in_flight.wait_for_key(write)
            if earlier is not None:
                return replay_response(write, earlier)
            return (await self._enqueue(route, write, refusal)).response

    async def _enqueue(self, route: WriteRoute, write: Write, refusal: ApiError | None) -> WriteOutcome:
        outcome_future: asyncio.Future[WriteOutcome] = asyncio.get_running_loop().create_future()

        def reply(outcome: WriteOutcome) -> None:
            if not outcome_future.done():
                outcome_future.set_result(outcome)

        pending = Pending(write, refusal, reply)
        try:
            self._put(route, pending)
        except Overloaded:
            raise _overloaded() from None
        try:
            return await outcome_future
        except asyncio.CancelledError:
            self.in_flight.give_up([pending])
            raise

    def find_queue(self, route: WriteRoute, request: Request) -> QueueKey:
        """Return the queue for a write, or raise if the queue is full; called before the body is decoded."""
        queue = self._next_queue(route, request.caller.organization_id)
        if not self.coalescer.has_room(queue, size=len(request.body)):
            raise _overloaded()
        return queue

    def submit_now(self, queue: QueueKey, write: Write, reply: Callable[[WriteOutcome], None]) -> None:
        """Queue a valid write, whose idempotency key is not in flight, in the queue that `find_queue` returned."""
        pending = Pending(write, None, reply)
        self.coalescer.add(queue, pending, size=len(write.request.body))
        self._arrivals += 1
        self.in_flight.add(pending)

    def _put(self, route: WriteRoute, pending: Pending) -> None:
        request = pending.write.request
        self.coalescer.put(self._next_queue(route, request.caller.organization_id), pending, size=len(request.body))
        self._arrivals += 1
        self.in_flight.add(pending)

    def _next_queue(self, route: WriteRoute, organization_id: UUID) -> QueueKey:
        """Return the queue for the next write of this route; several queues take turns."""
        return organization_id, route.operation_id, self._arrivals % route.parallel_batches

    def _writes_per_batch(self, queue_key: QueueKey) -> int:
        return 1 if queue_key in self._fast_path.unbatched else self._routes[queue_key[1]].writes_per_batch_max

    def _shared_as(self, queue_key: QueueKey) -> str | None:
        """Return the operation if batches of several organizations may share a transaction, else None."""
        # On a cluster organizations are on several nodes, and a commit on several nodes costs more than it saves.
        fast_path = self._fast_path
        if self._database.is_cluster or queue_key in fast_path.unshared or queue_key in fast_path.skipped:
            return None
        name = queue_key[1]
        return None if self._routes[name].run_fast_shared is None else name

    async def _flush_together(self, queued: Sequence[tuple[QueueKey, list[Pending]]]) -> list[list[Pending]]:
        """Try small batches of several organizations as one transaction; return the unwritten writes of each batch."""
        _organization_id, operation, _number = queued[0][0]
        route = self._routes[operation]
        batches = [(key, [pending for pending in batch if pending.outcome is None]) for key, batch in queued]
        pending_writes = [pending for _, batch in batches for pending in batch]
        if not pending_writes:
            # All writes waited for too long and were refused.
            return [[] for _ in queued]
        self._batch_sizes[route.operation_id].observe(len(pending_writes))
        if route.run_fast_shared is None:
            raise AssertionError("only a route with `run_fast_shared` is flushed together")
        try:
            return await self._fast_path.run_together(route, route.run_fast_shared, batches)
        except Exception as error:  # noqa: BLE001  # every waiting caller gets a response
            self._refuse_all(route, pending_writes, error)
            return [[] for _ in queued]

    async def _flush(self, queue_key: QueueKey, batch: list[Pending]) -> None:
        """Run a batch of one queue: the fast path, then the fallback path for the remaining writes."""
        organization_id, name, _ = queue_key
        batch = [pending for pending in batch if pending.outcome is None]
        route = self._routes[name]
        fallback = partial(self._fallback_path.run, route, organization_id)
        needs_fallback = bool(batch) and batch[0].needs_fallback
        if not needs_fallback:
            self._batch_sizes[name].observe(len(batch))
        is_fast = route.run_fast is not None and not needs_fallback and queue_key not in self._fast_path.skipped
        try:
            if is_fast and route.run_fast is not None:
                batch = await self._fast_path.run(
                    route, route.run_fast, organization_id, batch, queue=queue_key, fallback=fallback
                )
            if batch:
                await fallback(batch)
        except Exception as error:  # noqa: BLE001  # as above
            self._refuse_all(route, batch, error)

    def _refuse_all(self, route: WriteRoute, batch: Sequence[Pending], error: Exception) -> None:
        log_values = {"operation": route.operation_id, "request_ids": ids_of(batch)}
        if isinstance(error, CONNECTION_ERRORS):
            # It is unknown whether the commit happened; the unique keys make the caller's retry safe.
            _log.warning("writes.database_unavailable", error=type(error).__name__, **log_values)
            self.in_flight.refuse(batch, Unavailable(self._describe_outage(error)))
        else:
            _log.error("writes.failed", exc_info=error, **log_values)
            self.in_flight.refuse(batch, InternalError("The request could not be carried out; nothing was written."))

    def _queue_again(self, route: WriteRoute, pending: Pending) -> None:
        """Queue the write again after a pause, during which it uses no connection; refuse it after its time limit."""
        if monotonic() - pending.arrived_at >= WAIT_FOR_SAME_KEY_S:
            self.in_flight.refuse([pending], in_progress())
        else:
            asyncio.get_running_loop().call_later(RETRY_KEY_AFTER_S, self._put_again, route, pending)

    def _put_again(self, route: WriteRoute, pending: Pending) -> None:
        try:
            if pending.outcome is None:
                self._put(route, pending)
        except Overloaded:
            self.in_flight.refuse([pending], _overloaded())


def _overloaded() -> Unavailable:
    return Unavailable("Too much is waiting to be written; try again.")
