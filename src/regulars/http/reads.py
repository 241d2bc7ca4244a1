"""Run the reads of the API: on a pooled connection, within a time limit, and always with a response.

A look-up is a read of one object by its id. Look-ups of one route and organization share a statement: those that arrive
while a statement runs form the next one. A look-up joins only a statement that is not sent yet, so it sees every write
that was committed before it arrived.
"""

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from regulars.http.gzip import compress_list, is_list
from regulars.http.in_flight import REQUEST_S, too_late
from regulars.http.problem import PROBLEM_STATUS_MIN, RequestContext, problem_response
from regulars.http.request import ApiResponse, Request, wait_for_response
from regulars.http.route import LookUpRoute, ReadRoute
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.coalesce import Coalescer, Overloaded
from regulars.kit.db import CONNECTION_ERRORS, KEY_READS_MAX, Database
from regulars.kit.errors import ApiError, InternalError, Unavailable
from regulars.kit.writable import describe_outage

LOOK_UPS_PER_STATEMENT_MAX = 128

_log = log.get(__name__)


class Reads:
    """Runs reads; there is one object per process."""

    def __init__(
        self, database: Database, *, describe_outage: Callable[[BaseException], str] = describe_outage
    ) -> None:
        self.database = database
        self._describe_outage = describe_outage
        self._looking_up: Coalescer[tuple[UUID, str], Request] = Coalescer(
            self._look_up_together, items_max=lambda _: LOOK_UPS_PER_STATEMENT_MAX, flushers=KEY_READS_MAX
        )

    async def respond(
        self,
        route: ReadRoute | LookUpRoute,
        request: Request,
        *,
        accepts_gzip: bool = False,
        within_s: float = REQUEST_S,
    ) -> ApiResponse:
        """Return the response of the route, or an error response if it cannot be made or compressed."""
        try:
            if isinstance(route, LookUpRoute):
                async with asyncio.timeout(within_s):
                    return await self._look_up_and_wait(route, request)
            async with self.database.reading(until=monotonic() + within_s) as tx:
                response = await route.handle(tx, request)
            if is_list(route) and response.status < PROBLEM_STATUS_MIN:
                return await compress_list(response, is_accepted=accepts_gzip)
            return response
        except Exception as error:  # noqa: BLE001  # our own bugs get the error format too
            return self._respond_to_error(error, request)

    def can_look_up(self, route: LookUpRoute, request: Request) -> bool:
        """Whether there is room in the queue, so that `look_up` may be called now."""
        return self._looking_up.has_room((request.caller.organization_id, route.operation_id), size=1)

    def look_up(self, route: LookUpRoute, request: Request) -> None:
        """Respond later through `request.send`, without a task."""
        self._looking_up.put((request.caller.organization_id, route.operation_id), request, size=1)

    async def _look_up_and_wait(self, route: LookUpRoute, request: Request) -> ApiResponse:
        waiting = wait_for_response(request)
        request.route, request.arrived_at = route, monotonic()
        try:
            self.look_up(route, request)
        except Overloaded:
            refusal = Unavailable("Too much is waiting to be read; try again.")
            return problem_response(refusal, request)
        return await waiting

    async def _look_up_together(self, key: tuple[UUID, str], batch: list[Request]) -> None:
        """Respond to the look-ups of a batch, which all have the deadline of the oldest one."""
        try:
            async with asyncio.timeout(batch[0].arrived_at + REQUEST_S - monotonic()):
                responses = await self._run_statement(key[0], batch)
        except Exception as error:  # noqa: BLE001  # every waiting caller gets a response
            responses = [self._respond_to_error(error, request) for request in batch]
        # Reply in the next iteration of the event loop, so that the next statement is sent first.
        asyncio.get_running_loop().call_soon(_deliver, batch, responses)

    async def _run_statement(self, organization_id: UUID, batch: Sequence[Request]) -> list[ApiResponse]:
        try:
            async with self.database.reading_by_key() as tx:
                results = await batch[0].route.find(tx, organization_id, batch)
        except Exception as error:
            if isinstance(error, CONNECTION_ERRORS) or len(batch) == 1:
                raise
            # One faulty look-up must not fail the other look-ups of its batch.
            alone = [await self._run_alone(organization_id, request) for request in batch]
            _log.warning("reads.looked_up_alone", operation=batch[0].route.operation_id, error=type(error).__name__)
            return alone
        return [
            response if isinstance(response, ApiResponse) else problem_response(response, request)
            for request, response in zip(batch, results, strict=True)
        ]

    async def _run_alone(self, organization_id: UUID, request: Request) -> ApiResponse:
        try:
            [response] = await self._run_statement(organization_id, [request])
        except Exception as error:  # noqa: BLE001  # as above
            return self._respond_to_error(error, request)
        return response

    def _respond_to_error(self, error: Exception, request: Request) -> ApiResponse:
        if isinstance(error, TimeoutError):
            return problem_response(too_late(), request)
        return error_response(error, request, describe_outage=self._describe_outage)


def _deliver(batch: Sequence[Request], responses: Sequence[ApiResponse]) -> None:
    for request, response in zip(batch, responses, strict=True):
        try:
            request.send(request, response)
        except Exception:  # noqa: BLE001  # the other callers need their response
            _log.exception("reads.caller_not_told", request_id=request.request_id)


def error_response(
    error: Exception, request: RequestContext, *, describe_outage: Callable[[BaseException], str]
) -> ApiResponse:
    """Make the error response for a refusal, an unavailable database or a bug of ours."""
    if isinstance(error, ApiError):
        return problem_response(error, request)
    if isinstance(error, CONNECTION_ERRORS):
        _log.warning("api.database_unavailable", request_id=request.request_id, error=type(error).__name__)
        return problem_response(Unavailable(describe_outage(error)), request)
    _log.error("api.failed", request_id=request.request_id, exc_info=error)
    return problem_response(InternalError("Something broke on our side."), request)
