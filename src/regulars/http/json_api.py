"""The JSON API as a plain ASGI application: route → key → rate → limits → body → idempotency → the operation.

Refusals come in exactly that order, and every answer under `/v<n>` is JSON in one envelope.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from regulars.http.address import base_url
from regulars.http.answered import Answered, Note, note_nothing
from regulars.http.problem import PROBLEM_STATUS_MIN, problem_answer
from regulars.http.rate_limit import Headers, RateLimiter
from regulars.http.route import Answer, Caller, Document, Mutation, Read, Request, Route
from regulars.http.router import Router
from regulars.http.writes import REQUEST_S, Writes, too_late
from regulars.idempotency.model import read_key
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.errors import (
    ApiError,
    Forbidden,
    HeadersTooLarge,
    InternalError,
    PayloadTooLarge,
    RequestTimeout,
    Unauthorized,
    Unavailable,
    UnsupportedMediaType,
    UriTooLong,
    invalid,
)
from regulars.kit.ids import new_request_id
from regulars.kit.metrics import PROCESS
from regulars.kit.writable import trouble

HEADER_BYTES_MAX = 16 << 10
URL_BYTES_MAX = 8 << 10
BODY_WAIT_S = 12.0
BODIES_BYTES_MAX = 128 << 20
QUERY_FIELDS_MAX = 100
NO_CONTENT = 204

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Authenticate = Callable[[bytes], Awaitable[Caller | None]]

SANE_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:\-]{1,128}")
_JSON = re.compile(rb'application/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)
_PLAIN_JSON = b"application/json"
_PROBLEM_JSON = b"application/problem+json"
_CLOSE = ((b"connection", b"close"),)
_log = log.get(__name__)


class JsonApi:
    def __init__(
        self,
        routes: Sequence[Route],
        *,
        database: Database,
        authenticate: Authenticate,
        rate_limiter: RateLimiter,
        writes: Writes,
        note: Note = note_nothing,
        trouble: Callable[[BaseException], str] = trouble,
        public_url: str | None = None,
    ) -> None:
        self._note = note
        self._trouble = trouble
        self._public_url = public_url
        self._router = Router(routes)
        self._database = database
        self._authenticate = authenticate
        self._rate_limiter = rate_limiter
        self._writes = writes
        self._metrics = {route.operation_id: PROCESS.route(f"{route.method} {route.path}") for route in routes}
        self._unrouted = PROCESS.route("unrouted")
        # What the bodies of all requests in this process take that have no answer yet.
        self._bodies_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(scope)
        try:
            answer = await self._answer(exchange, receive)
        except ApiError as error:
            answer = problem_answer(error, exchange.request_id)
        except TimeoutError:
            answer = problem_answer(too_late(), exchange.request_id)
        except CONNECTION_ERRORS as error:
            _log.warning("api.database_unavailable", request_id=exchange.request_id, error=type(error).__name__)
            answer = problem_answer(Unavailable(self._trouble(error)), exchange.request_id)
        except Exception:  # noqa: BLE001  # the envelope holds for our own mistakes too
            _log.exception("api.failed", request_id=exchange.request_id)
            answer = problem_answer(InternalError("Something broke on our side."), exchange.request_id)
        self._bodies_bytes -= exchange.body_bytes
        await _send(send, answer, exchange)
        counted = self._metrics[exchange.route.operation_id] if exchange.route is not None else self._unrouted
        ended = monotonic()
        counted.observe(answer.status, ended - exchange.started)
        if exchange.caller is not None and exchange.route is not None:
            answered = Answered(
                exchange.route,
                exchange.references,
                exchange.request_id,
                answer.status,
                exchange.started,
                ended,
                answer.body,
            )
            self._note(exchange.caller, answered)

    async def _answer(self, exchange: "_Exchange", receive: Receive) -> Answer:
        route, references = self._router.find(exchange.scope["method"], exchange.scope["raw_path"])
        exchange.route, exchange.references = route, references
        if isinstance(route, Document):
            exchange.check_size()
            _read_query(exchange.scope["query_string"], ())
            address = self._public_url or base_url(exchange.scope, exchange.headers.get(b"host", b""))
            return Answer(200, route.render(address))
        async with asyncio.timeout(REQUEST_S):
            caller = await self._authenticate(exchange.api_key()) if exchange.one_api_key() else None
        if caller is None:
            raise Unauthorized("Send a valid API key in the x-api-key header.")
        exchange.caller = caller
        if caller.is_ingest_only and not route.takes_ingest_keys:
            raise Forbidden("This key may only ingest; use one with the permission full.")
        exchange.rate_headers = self._rate_limiter.take(caller.api_key_id)
        exchange.check_size()
        if isinstance(route, Mutation):
            return await self._write(route, exchange, caller, references, receive)
        if not isinstance(route, Read):
            raise TypeError(f"{route.operation_id} is neither a read nor a write")
        query = _read_query(exchange.scope["query_string"], {parameter.name for parameter in route.parameters})
        async with self._database.reading(until=exchange.started + REQUEST_S) as tx:
            return await route.handle(tx, Request(caller, exchange.request_id, references, query, b""))

    async def _write(
        self, route: Mutation, exchange: "_Exchange", caller: Caller, references: tuple[str, ...], receive: Receive
    ) -> Answer:
        if route.body is not None:
            exchange.check_media_type()
        exchange.check_announced_length(route.body_bytes_max)
        body = await self._read_body(receive, route.body_bytes_max, exchange) if route.body is not None else b""
        key = read_key(exchange.idempotency_keys)
        target = exchange.scope["raw_path"]
        refusal: ApiError | None = None
        if exchange.scope["query_string"]:
            target += b"?" + exchange.scope["query_string"]
            try:
                _read_query(exchange.scope["query_string"], ())
            except ApiError as error:
                refusal = error

        def charge(tokens: int) -> None:
            if tokens > 0:
                # A refusal carries its own, newer figures.
                exchange.rate_headers = ()
                exchange.rate_headers = self._rate_limiter.take(caller.api_key_id, tokens=tokens)

        request = Request(caller, exchange.request_id, references, {}, body)
        async with asyncio.timeout(REQUEST_S):
            return await self._writes.submit(route, request, target=target, key=key, refusal=refusal, charge=charge)

    async def _read_body(self, receive: Receive, bytes_max: int, exchange: "_Exchange") -> bytes:
        """The whole body, cut off when it grows too large or stalls; closing the connection ends the rest of it."""
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(BODY_WAIT_S):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestTimeout("The caller hung up before the body was complete.", headers=_CLOSE)
                    chunk: bytes = message.get("body", b"")
                    exchange.body_bytes += len(chunk)
                    self._bodies_bytes += len(chunk)
                    if exchange.body_bytes > bytes_max:
                        raise _too_large(bytes_max)
                    if self._bodies_bytes > BODIES_BYTES_MAX:
                        raise Unavailable("Too many large bodies are being read; try again.")
                    if not message.get("more_body", False):
                        return b"".join([*chunks, chunk]) if chunks else chunk
                    chunks.append(chunk)
        except TimeoutError:
            raise RequestTimeout(f"The body must arrive within {BODY_WAIT_S:.0f} seconds.", headers=_CLOSE) from None


class _Exchange:
    """The headers of one request, read once, and what its answer will need."""

    __slots__ = (
        "api_keys",
        "body_bytes",
        "caller",
        "headers",
        "idempotency_keys",
        "rate_headers",
        "references",
        "request_id",
        "route",
        "scope",
        "started",
    )

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.started = monotonic()
        self.body_bytes = 0
        self.route: Route | None = None
        self.references: tuple[str, ...] = ()
        self.caller: Caller | None = None
        self.rate_headers: Headers = ()
        self.headers: dict[bytes, bytes] = {}
        self.api_keys: list[bytes] = []
        self.idempotency_keys: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"x-api-key":
                self.api_keys.append(value)
            elif name == b"idempotency-key":
                self.idempotency_keys.append(value)
            else:
                self.headers[name] = value
        self.request_id = _choose_request_id(self.headers.get(b"x-request-id", b""))

    def one_api_key(self) -> bool:
        return len(self.api_keys) == 1

    def api_key(self) -> bytes:
        return self.api_keys[0]

    def check_size(self) -> None:
        if len(self.scope["raw_path"]) + len(self.scope["query_string"]) > URL_BYTES_MAX:
            raise UriTooLong(f"A URL may have {URL_BYTES_MAX} bytes.")
        if sum([len(name) + len(value) for name, value in self.scope["headers"]]) > HEADER_BYTES_MAX:
            raise HeadersTooLarge(f"All headers together may have {HEADER_BYTES_MAX} bytes.")

    def check_media_type(self) -> None:
        media_type = self.headers.get(b"content-type", b"")
        if media_type != _PLAIN_JSON and not _JSON.fullmatch(media_type):
            raise UnsupportedMediaType("Send Content-Type: application/json, in UTF-8.", headers=_CLOSE)
        if self.headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise UnsupportedMediaType("Send the body without a Content-Encoding.", headers=_CLOSE)

    def check_announced_length(self, bytes_max: int) -> None:
        length = self.headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > bytes_max:
            raise _too_large(bytes_max)


def _too_large(bytes_max: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"A body here may have {bytes_max} bytes.", headers=_CLOSE)


def _read_query(query_string: bytes, allowed: Iterable[str]) -> Mapping[str, str]:
    """The query's parameters: only known ones, each at most once, as UTF-8 text without control characters."""
    if not query_string:
        return {}
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=QUERY_FIELDS_MAX,
        )
    except ValueError:
        raise invalid("", "FORMAT", "The query string cannot be read.") from None
    known = frozenset(allowed)
    query: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise invalid(name, "UNKNOWN_PARAMETER", "This operation has no such query parameter.")
        if name in query:
            raise invalid(name, "REPEATED_PARAMETER", "This query parameter may be given once.")
        if "\x00" in value:
            raise invalid(name, "FORBIDDEN_CHARACTER", "U+0000 is not allowed.")
        query[name] = value
    return query


def _choose_request_id(given: bytes) -> str:
    """The caller's own, if it is sane."""
    return given.decode("ascii") if SANE_REQUEST_ID.fullmatch(given) else new_request_id()


def with_request_id(scope: Scope, send: Send) -> Send:
    """For answers that the API does not give: they carry a request id too."""
    if scope["type"] != "http":
        return send
    request_id = _choose_request_id(dict(scope["headers"]).get(b"x-request-id", b"")).encode()
    scope["regulars_request_id"] = request_id.decode()

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id)]
        await send(message)

    return sending


async def _send(send: Send, answer: Answer, exchange: _Exchange) -> None:
    headers = answer_headers(answer, exchange.request_id, exchange.rate_headers)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def answer_headers(answer: Answer, request_id: str, rate_headers: Headers) -> list[tuple[bytes, bytes]]:
    headers = [(b"x-request-id", request_id.encode()), *rate_headers, *answer.headers]
    if answer.status != NO_CONTENT:
        content_type = _PROBLEM_JSON if answer.status >= PROBLEM_STATUS_MIN else _PLAIN_JSON
        headers += ((b"content-type", content_type), (b"content-length", b"%d" % len(answer.body)))
    return headers


def answer_head(answer: Answer, request_id: str, rate_headers: Headers) -> bytes:
    """The same headers as they are written, with the blank line."""
    lines = answer_headers(answer, request_id, rate_headers)
    return b"".join([b"%b: %b\r\n" % line for line in lines]) + b"\r\n"
