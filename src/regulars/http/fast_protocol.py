"""Handle API requests that arrive in one packet inside uvicorn's HTTP protocol, without ASGI.

Uvicorn makes an ASGI scope, a task and several futures per request, and writes the head and the body of a response
separately; that costs as much as recording a sale. This subclass of uvicorn's protocol passes a complete request to a
handler instead, and writes the response in one piece. Parsed heads (the request line and headers) are cached, since a
caller sends nearly the same head each time. The cache key is the head without the lines that differ: of a write its
length and idempotency key, of a read its request line. Reads have a separate cache, so that a caller that reads all
customers does not evict the heads of the cash registers.

The subclass relies on uvicorn's internals, so tests compare its responses with those of the ASGI path. Any unusual
request (a body in pieces, `Expect`, an older HTTP, pipelining, an API key that is not in the cache, an invalid request)
is passed on to uvicorn.
"""

import os
import re
from typing import Any, ClassVar, Protocol

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from regulars.http.large_bodies import LARGE_BYTES
from regulars.http.limited_protocol import LimitedProtocol
from regulars.kit import failpoint
from regulars.kit.bounded_cache import BoundedCache

HEADS_CACHED_MAX = 4_096
READ_HEADS_CACHED_MAX = 1_024
HEAD_CACHED_BYTES_MAX = 1_024

RawHeaders = list[tuple[bytes, bytes]]

_API = b"/v1/"
_WRITE, _READ = b"POST", b"GET"
_HTTP_VERSION = "1.1"
# The request line of a read in its usual form; the parser handles any other request line.
_READ_LINE = re.compile(rb"GET (/v1/[A-Za-z0-9/._~:@!$'()*,;=%&?+-]+) HTTP/1\.1")
_BLANK_LINE = b"\r\n\r\n"
_KEY_LINE = b"\r\nidempotency-key: "
_LENGTH_LINE = b"\r\ncontent-length: "
_CLOSE = b"connection: close\r\n"


class Head(msgspec.Struct, frozen=True, gc=False):
    """The parsed head of a request, without the values that differ from one request to the next."""

    api_key: bytes
    request_id: bytes | None
    keep_alive: bool
    # The URL at which the caller reached this server; empty if unknown.
    base_url: str
    # The path of a write and its route, so that the route is found once.
    target: bytes = b""
    route: Any = None
    # Whether the response to a read may be compressed.
    accepts_gzip: bool = False


class FastRequestHandler(Protocol):
    """Takes a request and replies later, or declines it by returning None or False."""

    def read_head(self, target: bytes, headers: RawHeaders, *, keep_alive: bool) -> tuple[Head, bytes | None] | None:
        """Return the head of a write and its idempotency key, or None if the fast path does not take this request."""

    def read_head_of_read(self, headers: RawHeaders, *, keep_alive: bool) -> Head | None: ...

    def take(self, head: Head, key: bytes | None, body: bytes, cycle: "FastCycle") -> bool: ...

    def take_read(self, head: Head, target: bytes, cycle: "FastCycle") -> bool: ...


def fast_protocol(handler: FastRequestHandler) -> type[HttpToolsProtocol]:
    """Make the protocol class for uvicorn's `http` option."""
    caches = {
        "cached_heads": BoundedCache[bytes, Head](HEADS_CACHED_MAX),
        "cached_read_heads": BoundedCache[bytes, Head](READ_HEADS_CACHED_MAX),
    }
    return type("FastProtocol", (_FastProtocol,), {"handler": handler, **caches})


def split_head(head: bytes) -> tuple[bytes, bytes | None, bytes | None]:
    """Return the head without its `Content-Length` and `Idempotency-Key` lines, and the values of these two."""
    common, length = _remove_line(head, _LENGTH_LINE)
    common, key = _remove_line(common, _KEY_LINE)
    return common, length, key


def _remove_line(head: bytes, line: bytes) -> tuple[bytes, bytes | None]:
    start = head.lower().find(line)
    if start < 0:
        return head, None
    value, line_end, rest = head[start + len(line) :].partition(b"\r\n")
    return head[:start] + line_end + rest, value


def _is_complete(body: bytes, length: bytes | None) -> bool:
    """Whether the body is complete and short enough for the fast path."""
    return length == b"%d" % len(body) and len(body) <= LARGE_BYTES


class _NoEvent:
    """Stands in for the event by which uvicorn wakes the task of a request; the fast path has no task."""

    def set(self) -> None:
        pass


class FastCycle:
    """Stands in for uvicorn's cycle, the object of the current request, with the attributes that its protocol reads."""

    __slots__ = ("_protocol", "disconnected", "keep_alive", "message_event", "response_complete")

    # The response is written in one piece.
    response_started = False

    def __init__(self, protocol: "_FastProtocol", *, keep_alive: bool) -> None:
        self._protocol = protocol
        self.disconnected = False
        self.keep_alive = keep_alive
        self.message_event = _NO_EVENT
        self.response_complete = False

    def reply(self, status: int, headers_and_body: bytes) -> None:
        """Write the response: the status, the headers of this protocol, and the given further headers with the body."""
        self.response_complete = True
        if not self.disconnected:
            self._protocol.write_response(status, headers_and_body, keep_alive=self.keep_alive)


_NO_EVENT = _NoEvent()


class _FastProtocol(LimitedProtocol):
    handler: ClassVar[FastRequestHandler]
    cached_heads: ClassVar[BoundedCache[bytes, Head]]
    cached_read_heads: ClassVar[BoundedCache[bytes, Head]]
    # The packet that is being parsed, if a request starts with it.
    _packet = b""
    # The pieces of the body while the parser reads a request for the fast path; None at any other time.
    _body_pieces: list[bytes] | None = None
    _responded_at = float("-inf")

    def data_received(self, data: bytes) -> None:
        if self._is_between_requests:
            if self._take_if_cached(data):
                return
            self._packet = data
        super().data_received(data)

    def on_packet_complete(self) -> None:
        self._packet = b""
        if self._body_pieces is not None:
            # Part of the body is still missing: uvicorn waits for it, with its limits and our deadline.
            self._leave_fast_path()

    def _take_if_cached(self, data: bytes) -> bool:
        """Take the packet if it is one complete request with a cached head."""
        if data.startswith(_READ):
            return self._take_read_if_cached(data)
        head_bytes, _, body = data.partition(_BLANK_LINE)
        common, length, key = split_head(head_bytes)
        head = self.cached_heads.entries.get(common)
        if head is None or not _is_complete(body, length) or not self._is_free():
            return False
        if self._head_timer is not None:
            self._stop_head_timer()
        return self._take(head, key, body)

    def _take_read_if_cached(self, data: bytes) -> bool:
        line, _, common = data.partition(b"\r\n")
        head = self.cached_read_heads.entries.get(common)
        request_line = _READ_LINE.fullmatch(line) if head is not None else None
        if head is None or request_line is None or not self._is_free():
            return False
        if self._head_timer is not None:
            self._stop_head_timer()
        return self._take_read(head, request_line[1])

    def _is_free(self) -> bool:
        """Whether the last response is written, the caller reads its responses, and the server does not stop; uvicorn
        handles a slow reader, and closes connections."""
        is_complete = self.cycle is None or self.cycle.response_complete
        return is_complete and not (self.flow.write_paused or self._is_stopping)

    def _take(self, head: Head, key: bytes | None, body: bytes) -> bool:
        cycle = FastCycle(self, keep_alive=head.keep_alive)
        # Set before the handler takes the request, because the handler may reply at once.
        previous, self.cycle = self.cycle, cycle  # type: ignore[assignment]  # it has the attributes that are read
        if self.handler.take(head, key, body, cycle):
            return True
        self.cycle = previous
        return False

    def _take_read(self, head: Head, target: bytes) -> bool:
        cycle = FastCycle(self, keep_alive=head.keep_alive)
        if self.handler.take_read(head, target, cycle):
            self.cycle = cycle  # type: ignore[assignment]  # it has the attributes that are read
            return True
        return False

    def on_head_checked(self) -> None:
        if (
            self.url.startswith(_API)
            and self._is_free()
            and self.parser.get_method() in {_WRITE, _READ}
            and self.parser.get_http_version() == _HTTP_VERSION
            and not self.expect_100_continue
            and not self.parser.should_upgrade()
        ):
            self._body_pieces = []
        else:
            super().on_head_checked()

    def is_body_cut_off(self) -> bool:
        # A request for the fast path was not passed to uvicorn.
        return self._body_pieces is None and super().is_body_cut_off()

    def on_body(self, body: bytes) -> None:
        if self._body_pieces is not None:
            self._body_pieces.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._body_pieces is None:
            super().on_message_complete()
            return
        self._is_between_requests = True
        self._is_line_checked = False
        take = self._take_new_read if self.parser.get_method() == _READ else self._take_new
        if take(b"".join(self._body_pieces), keep_alive=self.parser.should_keep_alive()):
            self._body_pieces = None
        else:
            self._leave_fast_path()
            super().on_message_complete()
        # A further request of this packet does not start with it.
        self._packet = b""

    def _take_new(self, body: bytes, *, keep_alive: bool) -> bool:
        head_and_key = self.handler.read_head(self.url, self.headers, keep_alive=keep_alive)
        if head_and_key is None or not self._take(*head_and_key, body):
            return False
        self._cache_head(*head_and_key)
        return True

    def _take_new_read(self, body: bytes, *, keep_alive: bool) -> bool:
        head = None if body else self.handler.read_head_of_read(self.headers, keep_alive=keep_alive)
        line, _, common = self._packet.partition(b"\r\n")
        request_line = _READ_LINE.fullmatch(line)
        if head is None or request_line is None or not self._take_read(head, request_line[1]):
            return False
        # The same conditions as for a write in `_cache_head`. A head that is not the whole packet is not cached: what
        # follows it is another request, which would be skipped whenever the same packet came again.
        is_whole_packet = common.find(_BLANK_LINE) == len(common) - len(_BLANK_LINE)
        if head.request_id is None and is_whole_packet and len(common) <= HEAD_CACHED_BYTES_MAX:
            self.cached_read_heads.add(common, head)
        return True

    def _cache_head(self, head: Head, key: bytes | None) -> None:
        """Cache this head, if it came in one packet with its body and `split_head` finds its idempotency key.

        A head with a request id is not cached, because the id differs each time.
        """
        head_bytes, _, body = self._packet.partition(_BLANK_LINE)
        common, length, key_in_head = split_head(head_bytes)
        is_cacheable = _is_complete(body, length) and key_in_head == key and head.request_id is None
        if is_cacheable and len(common) <= HEAD_CACHED_BYTES_MAX:
            self.cached_heads.add(common, head)

    def _leave_fast_path(self) -> None:
        """Pass the head and the pieces of the body that were parsed so far to uvicorn."""
        pieces, self._body_pieces = self._body_pieces or [], None
        super().on_head_checked()
        for piece in pieces:
            super().on_body(piece)

    def write_response(self, status: int, headers_and_body: bytes, *, keep_alive: bool) -> None:
        if self._lingering_transport.is_lingering or self._lingering_transport.is_gone():
            return
        content = [STATUS_LINE[status]]
        for name, value in self.server_state.default_headers:
            content += (name, b": ", value, b"\r\n")
        if not keep_alive:
            content.append(_CLOSE)
        content.append(headers_and_body)
        response = b"".join(content)
        if "answer.half" in failpoint.armed:
            response = self._write_half(response)
        self.transport.write(response)
        if not keep_alive:
            self.transport.close()
        if self.pipeline or not keep_alive:
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        self._responded_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._start_keep_alive_timer(self.timeout_keep_alive)

    def _write_half(self, response: bytes) -> bytes:
        """Write half of the response at once, without the event loop, for a crash test; return the unwritten bytes."""
        written = os.write(self.transport.get_extra_info("socket").fileno(), response[: len(response) // 2])
        failpoint.hit("answer.half", self.transport.abort)
        return response[written:]

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection. Uvicorn restarts this timer for each response. The fast path does not: it checks
        the time of the last response when the timer fires."""
        self.timeout_keep_alive_task = None
        if not self._has_responded():
            return
        left_s = self._responded_at + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._start_keep_alive_timer(left_s)
        else:
            super().timeout_keep_alive_handler()

    def _start_keep_alive_timer(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)
