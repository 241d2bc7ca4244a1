"""The JSON API's side of the fast lane: the common case of one write route, decided without awaiting anything.

It declines whatever needs a second look. The request then takes the plain path from its beginning, so nothing may
have been done for it here: the rate limit is charged last, when it is known that there is room in the queue.
"""

from collections.abc import Callable, Mapping

from regulars.http.fast_lane import Headers, Reply
from regulars.http.json_api import HEADER_BYTES_MAX, SANE_REQUEST_ID, answer_headers
from regulars.http.pending import Outcome
from regulars.http.rate_limit import RateLimiter
from regulars.http.route import Caller, Mutation, Request, Write
from regulars.http.writes import Writes
from regulars.idempotency.model import fingerprint, read_key
from regulars.kit.clock import monotonic
from regulars.kit.errors import ApiError
from regulars.kit.ids import new_request_id
from regulars.kit.metrics import PROCESS

_JSON = b"application/json"


class ApiLane:
    def __init__(
        self,
        route: Mutation,
        *,
        cached_caller: Callable[[bytes], Caller | None],
        rate_limiter: RateLimiter,
        writes: Writes,
    ) -> None:
        self.url = route.path.encode()
        self._route = route
        self._cached_caller = cached_caller
        self._rate_limiter = rate_limiter
        self._writes = writes
        self._counted = PROCESS.route(f"{route.method} {route.path}")

    def take(self, headers: Headers, body: bytes, reply: Reply) -> bool:
        started = monotonic()
        given = dict(headers)
        if len(given) != len(headers) or len(body) > self._route.body_bytes_max or not _is_usual(given):
            return False
        caller = self._cached_caller(given.get(b"x-api-key", b""))
        if caller is None:
            return False
        request_id = given.get(b"x-request-id")
        if request_id is not None and not SANE_REQUEST_ID.fullmatch(request_id):
            return False
        request = Request(caller, request_id.decode() if request_id else new_request_id(), (), {}, body)
        try:
            key = read_key([given[b"idempotency-key"]]) if b"idempotency-key" in given else None
            command = self._route.prepare(request)
            if not self._writes.can_take(self._route, request, key):
                return False
            rate_headers = self._rate_limiter.take(caller.api_key_id)
        except ApiError:
            return False
        mark = b"" if key is None else fingerprint(self._route.method, self.url, body)

        def answer(outcome: Outcome) -> None:
            shown = outcome.answer
            lines = answer_headers(shown, request.request_id, rate_headers)
            head = b"".join([b"%b: %b\r\n" % line for line in lines])
            reply(shown.status, [head, b"\r\n", shown.body])
            self._counted.observe(shown.status, monotonic() - started)

        self._writes.submit_now(self._route, Write(request, command, key, mark), answer)
        return True


def _is_usual(headers: Mapping[bytes, bytes]) -> bool:
    """Plain JSON, nothing that changes how the body is read, and not too much of it all."""
    return (
        headers.get(b"content-type") == _JSON
        and b"content-encoding" not in headers
        and b"transfer-encoding" not in headers
        and sum(map(len, headers)) + sum(map(len, headers.values())) <= HEADER_BYTES_MAX
    )
