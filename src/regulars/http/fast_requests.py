"""Fast path of the JSON API for common requests of every route, decided without awaiting anything.

It declines every unusual request. Such a request is then handled from its beginning by `json_api`, so nothing may have
been done for it here, and its rate limit token is given back.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from regulars.http.address import known_address
from regulars.http.exchange import HEADER_BYTES_MAX, SANE_REQUEST_ID, URL_BYTES_MAX, read_query
from regulars.http.fast_protocol import GivenHeaders, Head, Reply
from regulars.http.gzip import accepts_gzip, compress_list, is_list
from regulars.http.in_flight import WriteOutcome
from regulars.http.large_bodies import LARGE_BYTES
from regulars.http.problem import PROBLEM_STATUS_MIN, problem_response
from regulars.http.rate_limit import RateLimiter
from regulars.http.reads import Reads
from regulars.http.responses import RecordResponse, ResponseRecord, record_nothing, response_head
from regulars.http.route import ApiResponse, Caller, LookUpRoute, ReadRoute, Request, Route, Write, WriteRoute
from regulars.http.router import Router
from regulars.http.writes import Writes
from regulars.idempotency.model import fingerprint, read_key
from regulars.kit import failpoint
from regulars.kit.clock import monotonic
from regulars.kit.errors import ApiError, Headers
from regulars.kit.ids import new_request_id
from regulars.kit.metrics import PROCESS

_JSON = b"application/json"


class _Call(msgspec.Struct, frozen=True):
    """A request that waits for its response."""

    route: Route
    request: Request
    rate_headers: Headers
    started: float
    reply: Reply


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
        public_url: str | None = None,
        trusts_proxies: bool = False,
    ) -> None:
        self._record_response = record_response
        self._public_url = public_url
        self._trusts_proxies = trusts_proxies
        self._router = Router(routes)
        self._cached_caller = cached_caller
        self._rate_limiter = rate_limiter
        self._reads = reads
        self._writes = writes
        self._counted = {route.operation_id: PROCESS.route(f"{route.method} {route.path}") for route in routes}
        # The event loop has only weak references to tasks.
        self._reading: set[asyncio.Task[None]] = set()

    def read_head(self, target: bytes, headers: GivenHeaders, *, keep_alive: bool) -> tuple[Head, bytes | None] | None:
        given = _read_usual(headers)
        if given is None or given.get(b"content-type") != _JSON or not given.get(b"content-length", b"").isdigit():
            return None
        try:
            route, references = self._router.find("POST", target)
        except ApiError:
            return None
        if not _is_short(route) or int(given[b"content-length"]) > LARGE_BYTES or len(target) > URL_BYTES_MAX:
            return None
        request_id = given.get(b"x-request-id")
        address = self._address(given)
        head = Head(given.get(b"x-api-key", b""), request_id, keep_alive, address, target, (route, references))
        return head, given.get(b"idempotency-key")

    def read_head_of_read(self, headers: GivenHeaders, *, keep_alive: bool) -> Head | None:
        given = _read_usual(headers)
        if given is None or b"content-length" in given:
            return None
        return Head(
            given.get(b"x-api-key", b""),
            given.get(b"x-request-id"),
            keep_alive,
            self._address(given),
            accepts_gzip=accepts_gzip(given.get(b"accept-encoding", b"")),
        )

    def _address(self, given: Mapping[bytes, bytes]) -> str:
        """The same address as on the ASGI path, where uvicorn reads the scheme from the proxy's header."""
        forwarded = given.get(b"x-forwarded-proto", b"") if self._trusts_proxies else b""
        scheme = "https" if forwarded == b"https" else "http"
        return self._public_url or known_address(scheme, given[b"host"])

    def take(self, head: Head, key: bytes | None, body: bytes, reply: Reply) -> bool:
        started = monotonic()
        caller = self._cached_caller(head.api_key)
        route, references = head.route
        if caller is None or (caller.is_ingest_only and not route.takes_ingest_keys):
            return False
        failpoint.hit("authenticated")
        request = Request(caller, _request_id(head), references, {}, body, head.address)
        rate_headers: Headers = ()
        try:
            # Refused before the body is decoded: decoding is most of the cost of a refusal.
            rate_headers = self._rate_limiter.take(caller.api_key_id)
            queue = self._writes.find_room(route, request)
        except ApiError as error:
            # Respond at once: an overloaded event loop would leave a scheduled response waiting for long.
            refusal = problem_response(error, request)
            self._respond(_Call(route, request, rate_headers, started, reply), refusal)
            return True
        try:
            text = None if key is None else read_key([key])
            command = route.prepare(request)
        except Exception:  # noqa: BLE001  # a refusal or our own bug: the ASGI path meets it again and responds
            return self._decline(caller)
        if text is not None and self._writes.in_flight.has_key(caller.organization_id, text):
            return self._decline(caller)
        mark = b""
        if text is not None:
            mark = fingerprint(route.method, head.target, body, is_ingest_only=caller.is_ingest_only)
        call = _Call(route, request, rate_headers, started, reply)

        def respond(outcome: WriteOutcome) -> None:
            self._respond(call, outcome.response)

        self._writes.submit_now(queue, Write(request, command, text, mark), respond)
        return True

    def _decline(self, caller: Caller) -> bool:
        """The ASGI path counts the request itself."""
        self._rate_limiter.give_back(caller.api_key_id)
        return False

    def take_read(self, head: Head, target: bytes, reply: Reply) -> bool:
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
            request = Request(caller, _request_id(head), references, query, b"", head.address)
            if isinstance(route, LookUpRoute) and not self._reads.can_look_up(route, request):
                return False
            rate_headers = self._rate_limiter.take(caller.api_key_id)
        except ApiError:
            return False
        call = _Call(route, request, rate_headers, started, reply)
        if isinstance(route, LookUpRoute):
            self._reads.look_up(route, request, partial(self._respond, call))
            return True
        reading = asyncio.get_running_loop().create_task(self._read(route, call, accepts=head.accepts_gzip))
        self._reading.add(reading)
        reading.add_done_callback(self._reading.discard)
        return True

    async def _read(self, route: ReadRoute, call: _Call, *, accepts: bool) -> None:
        response = await self._reads.respond(route, call.request)
        if is_list(route) and response.status < PROBLEM_STATUS_MIN:
            response = await compress_list(response, accepts=accepts)
        self._respond(call, response)

    def _respond(self, call: _Call, shown: ApiResponse) -> None:
        request = call.request
        call.reply(shown.status, response_head(shown, request.request_id, call.rate_headers) + shown.body)
        ended = monotonic()
        self._counted[call.route.operation_id].observe(shown.status, ended - call.started)
        problem = shown.body if shown.status >= PROBLEM_STATUS_MIN else b""
        record = ResponseRecord(
            call.route, request.references, request.request_id, shown.status, call.started, ended, problem
        )
        self._record_response(request.caller, record)


def _is_short(route: Route) -> bool:
    """Whether a write is a single item without `before_answer`: the tokens of a batch request are known only after
    decoding, and a response that waits for something needs a task."""
    return (
        isinstance(route, WriteRoute) and route.body is not None and route.cost is None and route.before_answer is None
    )


def _request_id(head: Head) -> str:
    return new_request_id() if head.request_id is None else head.request_id.decode()


def _read_usual(headers: GivenHeaders) -> Mapping[bytes, bytes] | None:
    """The headers, if they are not too large, none is repeated and none changes how the body is read."""
    given = dict(headers)
    is_usual = (
        len(given) == len(headers)
        and b"host" in given
        and b"content-encoding" not in given
        and b"transfer-encoding" not in given
        and SANE_REQUEST_ID.fullmatch(given.get(b"x-request-id", b"none")) is not None
        and sum(map(len, given)) + sum(map(len, given.values())) <= HEADER_BYTES_MAX
    )
    return given if is_usual else None
