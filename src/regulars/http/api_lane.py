"""The JSON API's side of the fast lane: the common case of one write route, decided without awaiting anything.

It declines whatever needs a second look. The request then takes the long way from its beginning, so nothing may
have been done for it here: the rate limit is charged last, when it is known that there is room in the queue.
"""

from collections.abc import Callable, Mapping

from regulars.http.answer_head import answer_head
from regulars.http.answered import Answered, Note, note_nothing
from regulars.http.exchange import HEADER_BYTES_MAX, SANE_REQUEST_ID
from regulars.http.fast_lane import Head, Headers, Reply
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
        note: Note = note_nothing,
    ) -> None:
        self._note = note
        self.url = route.path.encode()
        self._route = route
        self._cached_caller = cached_caller
        self._rate_limiter = rate_limiter
        self._writes = writes
        self._counted = PROCESS.route(f"{route.method} {route.path}")

    def read_head(self, headers: Headers, *, keep_alive: bool) -> tuple[Head, bytes | None] | None:
        given = dict(headers)
        if len(given) != len(headers) or not _is_usual(given, body_bytes_max=self._route.body_bytes_max):
            return None
        request_id = given.get(b"x-request-id")
        if request_id is not None and not SANE_REQUEST_ID.fullmatch(request_id):
            return None
        head = Head(given.get(b"x-api-key", b""), request_id, int(given[b"content-length"]), keep_alive)
        return head, given.get(b"idempotency-key")

    def take(self, head: Head, key: bytes | None, body: bytes, reply: Reply) -> bool:
        started = monotonic()
        caller = self._cached_caller(head.api_key)
        if caller is None:
            return False
        request_id = new_request_id() if head.request_id is None else head.request_id.decode()
        request = Request(caller, request_id, (), {}, body)
        try:
            text = None if key is None else read_key([key])
            command = self._route.prepare(request)
            if not self._writes.can_take(self._route, request, text):
                return False
            rate_headers = self._rate_limiter.take(caller.api_key_id)
        except ApiError:
            return False
        mark = b""
        if text is not None:
            mark = fingerprint(self._route.method, self.url, body, is_ingest_only=caller.is_ingest_only)

        def answer(outcome: Outcome) -> None:
            shown = outcome.answer
            reply(shown.status, answer_head(shown, request_id, rate_headers) + shown.body)
            ended = monotonic()
            self._counted.observe(shown.status, ended - started)
            self._note(caller, Answered(self._route, (), request_id, shown.status, started, ended, shown.body))

        self._writes.submit_now(self._route, Write(request, command, text, mark), answer)
        return True


def _is_usual(headers: Mapping[bytes, bytes], *, body_bytes_max: int) -> bool:
    """Plain JSON of a known length, nothing that changes how it is read, and not too much of it all."""
    return (
        headers.get(b"content-type") == _JSON
        and b"host" in headers
        and b"content-encoding" not in headers
        and b"transfer-encoding" not in headers
        and headers.get(b"content-length", b"").isdigit()
        and int(headers[b"content-length"]) <= body_bytes_max
        and sum(map(len, headers)) + sum(map(len, headers.values())) <= HEADER_BYTES_MAX
    )
