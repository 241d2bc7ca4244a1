"""Handle common requests of the JSON API without ASGI, and decline all others without awaiting anything.

`json_api` handles a declined request from its beginning, so its rate limit token is refunded here.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from regulars.http import responses
from regulars.http.exchange import HEADER_BYTES_MAX, URL_BYTES_MAX, VALID_REQUEST_ID, read_query
from regulars.http.fast_protocol import FastCycle, Head, RawHeaders
from regulars.http.gzip import accepts_gzip
from regulars.http.large_bodies import LARGE_BYTES
from regulars.http.problem import PROBLEM_STATUS_MIN, problem_response
from regulars.http.rate_limit import RateLimiter
from regulars.http.reads import Reads
from regulars.http.request import ApiResponse, Caller, Request
from regulars.http.responses import RecordResponse, record_nothing
from regulars.http.route import LookUpRoute, ReadRoute, Route, WriteRoute
from regulars.http.router import Router
from regulars.http.writes import Writes
from regulars.idempotency.model import fingerprint, read_key
from regulars.kit import failpoint
from regulars.kit.address import url_of_host
from regulars.kit.clock import monotonic
from regulars.kit.errors import ApiError
from regulars.kit.ids import new_request_id
from regulars.kit.metrics import PROCESS_METRICS, ResponseRecord
from regulars.kit.public_address import PublicAddress

_JSON = b"application/json"


class FastRequests:
    def __init__(
        self,
        routes: Sequence[Route],
        *,
        cached_caller: Callable[[bytes], Caller | None],
        rate_limiter: RateLimiter,
        reads: Reads,
        writes: Writes,
        record_response: RecordResponse = record_nothing,
        address: PublicAddress | None = None,
        trusts_proxies: bool = False,
    ) -> None:
        self._record_response = record_response
        self._address = address or PublicAddress()
        self._trusts_proxies = trusts_proxies
        self._router = Router(routes)
        self._cached_caller = cached_caller
        self._rate_limiter = rate_limiter
        self._reads = reads
        self._in_flight = writes.in_flight
        self._metrics = {route.operation_id: PROCESS_METRICS.route(f"{route.method} {route.path}") for route in routes}
        # Running reads; the event loop itself has only weak references to tasks.
        self._read_tasks: set[asyncio.Task[None]] = set()

    def read_head(self, target: bytes, headers: RawHeaders, *, keep_alive: bool) -> tuple[Head, bytes | None] | None:
        by_name = _read_common_headers(headers)
        if (
            by_name is None
            or by_name.get(b"content-type") != _JSON
            or not by_name.get(b"content-length", b"").isdigit()
        ):
            return None
        try:
            route, references = self._router.find("POST", target)
        except ApiError:
            return None
        if not _is_single_item(route) or int(by_name[b"content-length"]) > LARGE_BYTES or len(target) > URL_BYTES_MAX:
            return None
        request_id = by_name.get(b"x-request-id")
        base_url = self._base_url(by_name)
        head = Head(by_name.get(b"x-api-key", b""), request_id, keep_alive, base_url, target, (route, references))
        return head, by_name.get(b"idempotency-key")

    def read_head_of_read(self, headers: RawHeaders, *, keep_alive: bool) -> Head | None:
        by_name = _read_common_headers(headers)
        if by_name is None or b"content-length" in by_name:
            return None
        return Head(
            by_name.get(b"x-api-key", b""),
            by_name.get(b"x-request-id"),
            keep_alive,
            self._base_url(by_name),
            accepts_gzip=accepts_gzip(by_name.get(b"accept-encoding", b"")),
        )

    def _base_url(self, by_name: Mapping[bytes, bytes]) -> str:
        """Return the URL at which the caller reached this server, with the scheme that a trusted proxy names."""
        forwarded = by_name.get(b"x-forwarded-proto", b"") if self._trusts_proxies else b""
        scheme = "https" if forwarded == b"https" else "http"
        return self._address.url or url_of_host(scheme, by_name[b"host"])

    def take(self, head: Head, key: bytes | None, body: bytes, cycle: FastCycle) -> bool:
        started = monotonic()
        caller = self._cached_caller(head.api_key)
        route, references = head.route
        if caller is None or (caller.is_ingest_only and not route.takes_ingest_keys):
            return False
        if failpoint.armed:
            failpoint.hit("authenticated")
        request_id = new_request_id() if head.request_id is None else head.request_id.decode()
        request = Request(caller, request_id, references, {}, body, head.base_url, route, started, self.send, cycle)
        try:
            # Refuse before the body is decoded, because decoding would be most of the cost of a refusal.
            request.rate_headers = self._rate_limiter.take(caller.api_key_id)
            queue = self._in_flight.find_queue(route, request)
        except ApiError as error:
            # Respond at once: in an overloaded event loop, a scheduled response would wait for a long time.
            self.send(request, problem_response(error, request))
            return True
        try:
            request.command = route.prepare(request)
            if key is not None:
                request.key = read_key([key])
        except Exception:  # noqa: BLE001  # a refusal or our own bug: the ASGI path meets it again and responds
            return self._decline(caller)
        if request.key is not None:
            if self._in_flight.has_key(caller.organization_id, request.key):
                return self._decline(caller)
            request.fingerprint = fingerprint(route.method, head.target, body, is_ingest_only=caller.is_ingest_only)
        self._in_flight.add(queue, request)
        return True

    def _decline(self, caller: Caller) -> bool:
        """Refund the rate limit token, because the ASGI path counts the request itself; return False."""
        self._rate_limiter.refund(caller.api_key_id)
        return False

    def take_read(self, head: Head, target: bytes, cycle: FastCycle) -> bool:
        started = monotonic()
        caller = self._cached_caller(head.api_key)
        path, _, query_string = target.partition(b"?")
        try:
            route, references = self._router.find("GET", path)
            if caller is None or not isinstance(route, ReadRoute | LookUpRoute) or len(target) > URL_BYTES_MAX:
                return False
            if caller.is_ingest_only and not route.takes_ingest_keys:
                return False
            query = read_query(query_string, {parameter.name for parameter in route.parameters}) if query_string else {}
            request_id = new_request_id() if head.request_id is None else head.request_id.decode()
            request = Request(
                caller, request_id, references, query, b"", head.base_url, route, started, self.send, cycle
            )
            if isinstance(route, LookUpRoute) and not self._reads.can_look_up(route, request):
                return False
            request.rate_headers = self._rate_limiter.take(caller.api_key_id)
        except ApiError:
            return False
        if isinstance(route, LookUpRoute):
            self._reads.look_up(route, request)
            return True
        task = asyncio.get_running_loop().create_task(self._read(route, request, accepts_gzip=head.accepts_gzip))
        self._read_tasks.add(task)
        task.add_done_callback(self._read_tasks.discard)
        return True

    async def _read(self, route: ReadRoute, request: Request, *, accepts_gzip: bool) -> None:
        self.send(request, await self._reads.respond(route, request, accepts_gzip=accepts_gzip))

    def send(self, request: Request, response: ApiResponse) -> None:
        """Write the response, and record it."""
        route, started, request_id = request.route, request.arrived_at, request.request_id
        request.cycle.reply(response.status, _response_head(response, request) + response.body)
        ended = monotonic()
        self._metrics[route.operation_id].observe(response.status, ended - started)
        problem = response.body if response.status >= PROBLEM_STATUS_MIN else b""
        record = ResponseRecord(
            route.method, route.path, request.references, request_id, response.status, started, ended, problem
        )
        self._record_response(request.caller, record)


def _response_head(response: ApiResponse, request: Request) -> bytes:
    """Encode the headers of the response, with the blank line after them."""
    if response.status == responses.NO_CONTENT:
        headers = responses.response_headers(response, request.request_id, request.rate_headers)
        return responses.header_lines(headers) + b"\r\n"
    extra = (*request.rate_headers, *response.headers)
    template = responses.PROBLEM_HEAD if response.status >= PROBLEM_STATUS_MIN else responses.SUCCESS_HEAD
    return template % (request.request_id.encode(), responses.header_lines(extra) if extra else b"", len(response.body))


def _is_single_item(route: Route) -> bool:
    """Whether the route writes a single item and has no `before_response`: the rate limit cost of a batch request is
    known only after decoding, and a response that waits for something needs a task."""
    return (
        isinstance(route, WriteRoute)
        and route.body is not None
        and route.cost is None
        and route.before_response is None
    )


def _read_common_headers(headers: RawHeaders) -> Mapping[bytes, bytes] | None:
    """Return the headers by name, or None if they are too large, repeated, or change how the body is read."""
    by_name = dict(headers)
    is_common = (
        len(by_name) == len(headers)
        and b"host" in by_name
        and b"content-encoding" not in by_name
        and b"transfer-encoding" not in by_name
        and VALID_REQUEST_ID.fullmatch(by_name.get(b"x-request-id", b"none")) is not None
        and sum(map(len, by_name)) + sum(map(len, by_name.values())) <= HEADER_BYTES_MAX
    )
    return by_name if is_common else None
