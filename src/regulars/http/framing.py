"""Check how requests are framed: the line that begins a request, its target, and how the length of its body is given.

Uvicorn's parser also accepts a request without an HTTP version, the protocols RTSP and ICE, several spaces, and a bare
CR before a request. A proxy may read such bytes in another way than this server, as one request more or less, so
they are refused. The parser does not say where in a packet a request begins; so packets are cut where one may end.
"""

import re
from collections.abc import Sequence
from typing import Final

import httptools

from regulars.http.exchange import URL_BYTES_MAX
from regulars.kit.errors import ApiError, MalformedRequest, UnsupportedTransferEncoding, UriTooLong

# The longest target that the parser of addresses takes.
TARGET_BYTES_MAX: Final = 65_535

_EMPTY_LINES: Final = re.compile(rb"(?:\r\n)*")
_REQUEST_LINE: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++ [^\x00-\x20\x7f]++ HTTP/1\.[01]\r\n")
_LINE_END: Final = re.compile(rb"\r?\n")
_LINE_ENDS: Final = re.compile(rb"(?:\r\n)+")
_BLANK_LINE: Final = b"\r\n\r\n"
_BEGUN_BYTES_MAX: Final = len(_BLANK_LINE) - 1
_INVALID_ENCODING: Final = "Invalid `Transfer-Encoding` header value"

Headers = Sequence[tuple[bytes, bytes]]


def skip_empty_lines(data: bytes, start: int) -> int:
    """Return where the next request begins; empty lines before it are allowed."""
    match = _EMPTY_LINES.match(data, start)
    return start if match is None else match.end()


def check_request_line(data: bytes, start: int) -> bool:
    """Return whether the request line is complete; raise if it is wrong."""
    end = data.find(b"\n", start) + 1
    if end and _REQUEST_LINE.fullmatch(data, start, end) is None:
        raise MalformedRequest("The first line of a request is METHOD TARGET HTTP/1.1, with single spaces and CRLF.")
    return end > 0


def find_cut(data: bytes, start: int, *, is_head: bool, body_left: int) -> int:
    """Return the next position at which the request may end. `body_left` is what is missing of a body whose length is
    known; any other request ends with a blank line, of which a part may be before `start` or in the packet before."""
    if body_left:
        return min(start + body_left, len(data))
    # In a body there may be millions of empty lines.
    line_end = _LINE_END.match(data, start) if start < _BEGUN_BYTES_MAX else None
    line_end = line_end or (None if is_head else _LINE_ENDS.match(data, start))
    if line_end is not None:
        return line_end.end()
    blank_line = data.find(_BLANK_LINE, max(0, start - _BEGUN_BYTES_MAX))
    return len(data) if blank_line < 0 else blank_line + len(_BLANK_LINE)


def check_target(target: bytes) -> None:
    if len(target) > TARGET_BYTES_MAX:
        raise target_too_long()
    try:
        parsed = httptools.parse_url(target)
    except httptools.HttpParserInvalidURLError:
        raise MalformedRequest("The target of the request cannot be read.") from None
    if not parsed.path or not parsed.path.isascii():
        raise MalformedRequest("The target of the request has no path in ASCII.")


def target_too_long() -> UriTooLong:
    return UriTooLong(f"A URL may have {URL_BYTES_MAX} bytes.")


def read_body_length(headers: Headers, *, http_version: str) -> int:
    """Return the announced length of the body, or 0 if there is none or it comes in chunks."""
    length = dict(headers).get(b"content-length")
    encodings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
    if encodings:
        if http_version != "1.1" or length is not None:
            raise MalformedRequest("Transfer-Encoding needs HTTP/1.1, and no Content-Length beside it.")
        if encodings != [b"chunked"]:
            raise unsupported_encoding()
    return int(length) if length is not None and length.isdigit() else 0


def unsupported_encoding() -> UnsupportedTransferEncoding:
    return UnsupportedTransferEncoding("The only Transfer-Encoding is chunked.")


def error_of_parser(error: httptools.HttpParserError) -> ApiError:
    if str(error) == _INVALID_ENCODING:
        return unsupported_encoding()
    return MalformedRequest("The request is not valid HTTP/1.1.")
