"""The ASGI application of the JSON API.

A request is checked in this order: host, route, API key, rate limit, size limits, body, idempotency key; then the
function of the route runs. Every response under `/v<n>` is JSON, and every error has the same format (`problem.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from starlette.types import Receive, Scope, Send

from regulars.http.body import BODY_TIMEOUTS, Bodies, BodyTimeouts
from regulars.http.dry_run import DRY_RUN, PARAMETER, read_dry_run
from regulars.http.exchange import Exchange, read_query
from regulars.http.gzip import accepts_gzip, decompress
from regulars.http.in_flight import REQUEST_S, too_late, with_ignored_fields
from regulars.http.problem import PROBLEM_STATUS_MIN, problem_response
from regulars.http.rate_limit import RateLimiter
from regulars.http.reads import Reads, error_response
from regulars.http.request import ApiResponse, Caller, Request
from regulars.http.responses import RecordResponse, record_nothing, send_response
from regulars.http.route import DocumentRoute, LookUpRoute, QueryRoute, ReadRoute, Route, WriteRoute
from regulars.http.router import Router
from regulars.http.writes import Writes
from regulars.idempotency.model import read_key
from regulars.kit import failpoint
from regulars.kit.address import base_url
from regulars.kit.clock import monotonic
from regulars.kit.errors import ApiError, Forbidden, Unauthorized, Unavailable
from regulars.kit.metrics import PROCESS_METRICS, ResponseRecord
from regulars.kit.public_address import PublicAddress
from regulars.kit.writable import describe_outage

Authenticate = Callable[[bytes], Awaitable[Caller | None]]


class JsonApi:
    def __init__(
        self,
        routes: Sequence[Route],
        *,
        reads: Reads,
        authenticate: Authenticate,
        rate_limiter: RateLimiter,
        writes: Writes,
        record_response: RecordResponse = record_nothing,
        describe_outage: Callable[[BaseException], str] = describe_outage,
        address: PublicAddress | None = None,
        timeouts: BodyTimeouts = BODY_TIMEOUTS,
    ) -> None:
        self._record_response = record_response
        self._describe_outage = describe_outage
        self._address = address or PublicAddress()
        self._router = Router(routes)
        self._reads = reads
        self._authenticate = authenticate
        self._rate_limiter = rate_limiter
        self._writes = writes
        self._metrics = {route.operation_id: PROCESS_METRICS.route(f"{route.method} {route.path}") for route in routes}
        self._unrouted = PROCESS_METRICS.route("unrouted")
        self._bodies = Bodies(timeouts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, public_url=self._address.url)
        try:
            response = await self._respond(exchange, receive)
        except TimeoutError:
            response = problem_response(too_late(), exchange)
        except asyncio.CancelledError:
            # The grace period of a stopping server is over. Nothing else cancels a request.
            response = problem_response(Unavailable("The server is stopping; send the request again."), exchange)
        except Exception as error:  # noqa: BLE001  # our own bugs get the error format too
            response = error_response(error, exchange, describe_outage=self._describe_outage)
        await send_response(send, response, exchange.request_id, exchange.rate_headers)
        metrics = self._metrics[exchange.route.operation_id] if exchange.route is not None else self._unrouted
        ended = monotonic()
        metrics.observe(response.status, ended - exchange.started)
        if exchange.caller is not None and exchange.route is not None:
            record = ResponseRecord(
                exchange.route.method,
                exchange.route.path,
                exchange.references,
                exchange.request_id,
                response.status,
                exchange.started,
                ended,
                response.body if response.status >= PROBLEM_STATUS_MIN else b"",
            )
            self._record_response(exchange.caller, record)

    async def _respond(self, exchange: Exchange, receive: Receive) -> ApiResponse:
        exchange.check_host()
        route, references = self._router.find(exchange.scope["method"], exchange.scope["raw_path"])
        exchange.route, exchange.references = route, references
        if isinstance(route, DocumentRoute):
            exchange.check_size()
            read_query(exchange.scope["query_string"], ())
            server_url = self._address.url or base_url(exchange.scope, exchange.headers.get(b"host", b""))
            return ApiResponse(200, route.render(server_url))
        authentication_started = monotonic()
        async with asyncio.timeout(REQUEST_S):
            caller = await self._authenticate(exchange.api_keys[0]) if len(exchange.api_keys) == 1 else None
        # One time limit for everything except receiving the body, which has separate limits.
        exchange.time_left_s = REQUEST_S - (monotonic() - authentication_started)
        if caller is None:
            raise Unauthorized("Send a valid API key in the x-api-key header.")
        failpoint.hit("authenticated")
        exchange.caller = caller
        if caller.is_ingest_only and not route.takes_ingest_keys:
            raise Forbidden("This key may only ingest; use one with the permission full.")
        exchange.rate_headers = self._rate_limiter.take(caller.api_key_id)
        exchange.check_size()
        if isinstance(route, WriteRoute | QueryRoute):
            return await self._handle_body(route, exchange, caller, receive)
        if not isinstance(route, ReadRoute | LookUpRoute):
            raise TypeError(f"{route.operation_id} is neither a read nor a write")
        query = read_query(exchange.scope["query_string"], {parameter.name for parameter in route.parameters})
        request = Request(caller, exchange.request_id, references, query, b"", exchange.base_url)
        is_gzip_accepted = accepts_gzip(exchange.headers.get(b"accept-encoding", b""))
        return await self._reads.respond(route, request, accepts_gzip=is_gzip_accepted, within_s=exchange.time_left_s)

    async def _handle_body(
        self, route: WriteRoute | QueryRoute, exchange: Exchange, caller: Caller, receive: Receive
    ) -> ApiResponse:
        """Handle a request that may have a body, which counts towards the memory limit until the response is made."""
        if route.body is not None:
            exchange.check_media_type(takes_gzip=route.takes_gzip)
        exchange.check_announced_length(route.body_bytes_max)
        body = b"" if route.body is None else await self._bodies.read(receive, bytes_max=route.body_bytes_max)
        if body and exchange.is_gzip:
            body = await self._bodies.replace(body, decompress(body, bytes_max=route.body_bytes_max))
        try:
            request = Request(caller, exchange.request_id, exchange.references, {}, body, exchange.base_url)
            if isinstance(route, QueryRoute):
                return await self._query(route, exchange, request)
            return await self._submit(route, exchange, request)
        finally:
            self._bodies.release(body)

    async def _query(self, route: QueryRoute, exchange: Exchange, request: Request) -> ApiResponse:
        read_query(exchange.scope["query_string"], ())
        request.command = route.prepare(request)
        self._charge(exchange, request.caller, route.cost(request.command) - 1)
        async with self._reads.database.reading(until=monotonic() + exchange.time_left_s) as tx:
            return with_ignored_fields(request, await route.handle(tx, request, request.command))

    def _charge(self, exchange: Exchange, caller: Caller, tokens: int) -> None:
        """Take further tokens of the rate limit; the first one was taken before the body was read."""
        if tokens > 0:
            # If the limiter refuses, its error has newer headers.
            exchange.rate_headers = ()
            exchange.rate_headers = self._rate_limiter.take(caller.api_key_id, tokens=tokens)

    async def _submit(self, route: WriteRoute, exchange: Exchange, request: Request) -> ApiResponse:
        target, is_dry = exchange.scope["raw_path"], False
        if exchange.scope["query_string"]:
            target += b"?" + exchange.scope["query_string"]
            try:
                query = read_query(exchange.scope["query_string"], (PARAMETER,) if route.takes_dry_run else ())
                is_dry = read_dry_run(query.get(PARAMETER, "false"))
            except ApiError as error:
                request.refusal = error
        charge = partial(self._charge, exchange, request.caller)
        if is_dry:
            return await self._run_dry(route, exchange, request, charge)
        key = read_key(exchange.idempotency_keys)
        until = monotonic() + exchange.time_left_s
        async with asyncio.timeout(exchange.time_left_s):
            response = await self._writes.submit(route, request, target=target, key=key, charge=charge)
        if route.before_response is not None and response.status < PROBLEM_STATUS_MIN:
            await route.before_response(request.caller.organization_id, response.number_hashes, until - monotonic())
        return response

    async def _run_dry(
        self, route: WriteRoute, exchange: Exchange, request: Request, charge: Callable[[int], None]
    ) -> ApiResponse:
        """Run the write as a dry run; the response, even an error, has the header `X-Dry-Run`."""
        try:
            async with asyncio.timeout(exchange.time_left_s):
                response = await self._writes.run_dry(route, request, charge=charge)
        except ApiError as error:
            response = problem_response(error, exchange)
        return ApiResponse(response.status, response.body, (*response.headers, DRY_RUN))
