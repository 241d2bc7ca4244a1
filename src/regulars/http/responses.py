"""Write the headers of API responses, with and without ASGI, and describe a sent response for the request log."""

from collections.abc import Callable, Iterable

from starlette.types import Send

from regulars.http.problem import PROBLEM_STATUS_MIN
from regulars.http.request import ApiResponse, Caller
from regulars.kit import failpoint
from regulars.kit.errors import Headers
from regulars.kit.metrics import ResponseRecord

NO_CONTENT = 204

_PLAIN_JSON = b"application/json"
_PROBLEM_JSON = b"application/problem+json"
# A response is data for one caller: browsers must not guess another type, and proxies must not cache it.
_FIXED_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


# A function that is called after the response was sent, and must not wait for anything.
RecordResponse = Callable[[Caller, ResponseRecord], None]


def record_nothing(_caller: Caller, _record: ResponseRecord) -> None:
    """Do nothing; for a server without a request log."""


async def send_response(send: Send, response: ApiResponse, request_id: str, rate_headers: Headers) -> None:
    headers = response_headers(response, request_id, rate_headers)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    failpoint.hit("answer.half")
    await send({"type": "http.response.body", "body": response.body})


def response_headers(response: ApiResponse, request_id: str, rate_headers: Headers = ()) -> list[tuple[bytes, bytes]]:
    headers = [(b"x-request-id", request_id.encode()), *_FIXED_HEADERS, *rate_headers, *response.headers]
    if response.status != NO_CONTENT:
        content_type = _PROBLEM_JSON if response.status >= PROBLEM_STATUS_MIN else _PLAIN_JSON
        headers += ((b"content-type", content_type), (b"content-length", b"%d" % len(response.body)))
    return headers


def header_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % line for line in headers])


def _template(content_type: bytes) -> bytes:
    content_headers = header_lines([(b"content-type", content_type), (b"content-length", b"%d")])
    return b"x-request-id: %b\r\n" + header_lines(_FIXED_HEADERS) + b"%b" + content_headers + b"\r\n"


# The headers of a response with a body, with the blank line after them, for the fast path: with places for the request
# id, the lines of further headers, and the length of the body.
SUCCESS_HEAD, PROBLEM_HEAD = _template(_PLAIN_JSON), _template(_PROBLEM_JSON)
