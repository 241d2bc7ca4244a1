"""The headers of an answer of the API, the same on every way to the caller."""

from collections.abc import Iterable

from starlette.types import Send

from regulars.http.problem import PROBLEM_STATUS_MIN
from regulars.http.route import Answer
from regulars.kit import failpoint
from regulars.kit.errors import Headers

NO_CONTENT = 204

_PLAIN_JSON = b"application/json"
_PROBLEM_JSON = b"application/problem+json"
# Answers are data for one caller: nothing is to guess another type for them, and nothing on the way is to keep them.
_ALWAYS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


async def send_answer(send: Send, answer: Answer, request_id: str, rate_headers: Headers) -> None:
    headers = answer_headers(answer, request_id, rate_headers)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    failpoint.hit("answer.half")
    await send({"type": "http.response.body", "body": answer.body})


def answer_headers(answer: Answer, request_id: str, rate_headers: Headers = ()) -> list[tuple[bytes, bytes]]:
    headers = [(b"x-request-id", request_id.encode()), *_ALWAYS, *rate_headers, *answer.headers]
    if answer.status != NO_CONTENT:
        content_type = _PROBLEM_JSON if answer.status >= PROBLEM_STATUS_MIN else _PLAIN_JSON
        headers += ((b"content-type", content_type), (b"content-length", b"%d" % len(answer.body)))
    return headers


def answer_head(answer: Answer, request_id: str, rate_headers: Headers = ()) -> bytes:
    """The same headers as they are written, with the blank line, in one piece."""
    if answer.status == NO_CONTENT:
        return _written(answer_headers(answer, request_id, rate_headers)) + b"\r\n"
    others = (*rate_headers, *answer.headers)
    template = _PROBLEM if answer.status >= PROBLEM_STATUS_MIN else _USUAL
    return template % (request_id.encode(), _written(others) if others else b"", len(answer.body))


def _written(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % line for line in headers])


def _template(content_type: bytes) -> bytes:
    last = _written([(b"content-type", content_type), (b"content-length", b"%d")])
    return b"x-request-id: %b\r\n" + _written(_ALWAYS) + b"%b" + last + b"\r\n"


_USUAL, _PROBLEM = _template(_PLAIN_JSON), _template(_PROBLEM_JSON)
