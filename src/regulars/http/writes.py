"""Run the writes of the API: each in a batch with other writes, once per idempotency key, and in one transaction with
its stored response.

`in_flight` has the queues, and the writes that wait for their response. A batch of one queue is tried as one statement
if its route has one (`fast_path`); the remaining writes take several statements (`fallback_path`).
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from regulars.http import dry_run, fast_path
from regulars.http.fallback_path import FallbackPath
from regulars.http.in_flight import InFlight, QueueKey
from regulars.http.large_bodies import LARGE_BYTES, LargeBodies
from regulars.http.replay import replay_response
from regulars.http.request import ApiResponse, Request, wait_for_response
from regulars.http.route import Route, WriteRoute
from regulars.idempotency.model import fingerprint
from regulars.kit.clock import monotonic
from regulars.kit.db import Database
from regulars.kit.errors import ApiError
from regulars.kit.writable import describe_outage


class Writes:
    """Decodes writes and runs them in batches; there is one object per process."""

    def __init__(
        self,
        database: Database,
        routes: Sequence[Route],
        *,
        erased_error: ApiError,
        describe_outage: Callable[[BaseException], str] = describe_outage,
    ) -> None:
        self._database = database
        self._large = LargeBodies()
        self.in_flight = InFlight(database, routes, flush=self._flush, describe_outage=describe_outage)
        self._fallback_path = FallbackPath(database, self.in_flight, erased_error=erased_error)

    async def run_dry(self, route: WriteRoute, request: Request, *, charge: Callable[[int], None]) -> ApiResponse:
        """Return the response of a write that is rolled back. `charge` takes rate limit tokens after the first."""
        async with self._large.admitted(len(request.body)):
            request.command = await self._decode(route, request)
            if route.cost is not None:
                charge(route.cost(request.command) - 1)
            return await dry_run.run_dry(self._database, route, request)

    async def submit(
        self, route: WriteRoute, request: Request, *, target: bytes, key: str | None, charge: Callable[[int], None]
    ) -> ApiResponse:
        """Run one write and return its response. `charge` takes tokens of the rate limit after the first."""
        self.in_flight.find_queue(route, request)
        async with self._large.admitted(len(request.body)):
            if request.refusal is None:
                try:
                    request.command = await self._decode(route, request)
                except ApiError as error:
                    request.refusal = error
            if request.refusal is None and route.cost is not None:
                charge(route.cost(request.command) - 1)
            if key is not None:
                is_ingest_only = request.caller.is_ingest_only
                request.key = key
                request.fingerprint = fingerprint(route.method, target, request.body, is_ingest_only=is_ingest_only)
                earlier = await self.in_flight.wait_for_key(request)
                if earlier is not None:
                    return replay_response(request, earlier)
            elif request.refusal is not None:
                raise request.refusal
            return await self._wait(route, request)

    async def _decode(self, route: WriteRoute, request: Request) -> Any:
        if len(request.body) > LARGE_BYTES:
            return await self._large.decode(route.prepare, request)
        return route.prepare(request)

    async def _wait(self, route: WriteRoute, request: Request) -> ApiResponse:
        """Queue the write and wait for its response."""
        waiting = wait_for_response(request)
        request.route, request.arrived_at = route, monotonic()
        self.in_flight.add(self.in_flight.find_queue(route, request), request)
        try:
            return await waiting
        except asyncio.CancelledError:
            self.in_flight.give_up([request])
            raise

    async def _flush(self, queue: QueueKey, batch: list[Request]) -> None:
        """Run a batch of one queue: the fast path, then the fallback path for the remaining writes."""
        in_flight = self.in_flight
        batch = [request for request in batch if request.response is None]
        if not batch:
            return
        route: WriteRoute = batch[0].route
        fallback = partial(self._fallback_path.run, route, queue[0])
        try:
            if not batch[0].needs_fallback:
                in_flight.batch_sizes[route.operation_id].observe(len(batch))
                if route.run_fast is not None and queue not in in_flight.skipped.queues:
                    batch = await fast_path.run(in_flight, route, route.run_fast, batch, queue=queue, fallback=fallback)
            if batch:
                await fallback(batch)
        except Exception as error:  # noqa: BLE001  # every waiting caller gets a response
            in_flight.refuse_failed(route, batch, error)
