"""Limit connections below ASGI, and handle edge cases of HTTP that uvicorn does not handle.

Uvicorn's parser accepts a request line and headers of any length for any time, stops at an `Upgrade` header, treats
trailers as headers, and loses responses when the caller closes its side of the connection or is refused in the middle
of a body. This subclass of uvicorn's protocol sets limits, ignores upgrades and trailers, and sends those responses.
"""

import asyncio
from typing import cast

import httptools
import msgspec
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regulars.http.lingering import LingeringTransport
from regulars.http.problem import problem_response
from regulars.http.responses import response_head
from regulars.kit.errors import HeadersTooLarge
from regulars.kit.ids import new_request_id

# The request line and headers (the head). The API has a lower limit and refuses with a proper error; this limit is only
# for extreme requests.
HEAD_BYTES_MAX = 128 << 10
HEAD_WAIT_S = 15.0
# After this time without a single byte of its responses read, a caller is disconnected.
UNSENT_WAIT_S = 30.0
# A refused body that announces at most this length is read to its end, and the connection is reused.
SKIPPED_BYTES_MAX = 64 << 10

_UNREADABLE = "Invalid HTTP request received."
_UNREADABLE_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(_UNREADABLE))]
_UNREADABLE_RESPONSE = b"".join(
    [
        b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n",
        *[b"%b: %b\r\n" % header for header in _UNREADABLE_HEADERS],
        b"\r\n" + _UNREADABLE.encode(),
    ]
)


class LimitedProtocol(HttpToolsProtocol):
    # The state of the parser: between two requests, in the head of a request, or, if both are false, in a body.
    _is_between_requests = True
    _is_in_head = False
    # Bytes of packets that only extended an unfinished head, or trailers after a body; -1 after a packet that began a
    # request or brought a part of its body.
    _unread_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _unsent_timer: asyncio.TimerHandle | None = None
    # Whether received bytes are ignored.
    _stopped_reading = False
    _is_stopping = False
    # Whether the connection may be reused as soon as the whole body has arrived.
    _may_stay_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._lingering_transport = LingeringTransport(
            cast("asyncio.Transport", transport), self.loop, may_receive_more=lambda: not self._is_between_requests
        )
        super().connection_made(cast("asyncio.Transport", self._lingering_transport))
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_watching_unsent()
        self._lingering_transport.end()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        self._is_stopping = True
        self._lingering_transport.end()
        super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unsent(self._lingering_transport.unsent_bytes())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_watching_unsent()

    def _watch_unsent(self, unsent: int) -> None:
        self._unsent_timer = self.loop.call_later(UNSENT_WAIT_S, self._check_unsent, unsent)

    def _check_unsent(self, unsent_before: int) -> None:
        """Close the connection if the caller has read nothing since the last check; a slow reader is allowed."""
        unsent = self._lingering_transport.unsent_bytes()
        if unsent < unsent_before:
            self._watch_unsent(unsent)
        else:
            self._lingering_transport.abort()

    def _stop_watching_unsent(self) -> None:
        if self._unsent_timer is not None:
            self._unsent_timer.cancel()
            self._unsent_timer = None

    def data_received(self, data: bytes) -> None:
        if self._stopped_reading or self._lingering_transport.is_lingering:
            self._lingering_transport.discard(data)
            return
        self._unset_keepalive_if_required()
        is_readable = self._parse(data)
        self.on_packet_complete()
        if not is_readable:
            self.logger.warning(_UNREADABLE)
            self._stop_reading(_UNREADABLE_RESPONSE)
        elif self._is_between_requests:
            if self._is_unwatched():
                # The packet had only empty lines, which stop uvicorn's keep-alive timer but begin no request.
                self._start_head_timer()
        else:
            self._limit_unfinished_request(data)

    def on_packet_complete(self) -> None:
        """Hook for subclasses: a packet was parsed, and its errors are not handled yet."""

    def _parse(self, data: bytes) -> bool:
        """Parse the packet; return False if it is not HTTP. A head with an `Upgrade` header is parsed again without
        that header."""
        unparsed: bytes | memoryview = data
        try:
            while True:
                try:
                    self.parser.feed_data(unparsed)
                except httptools.HttpParserUpgrade as upgrade:
                    unparsed = memoryview(unparsed)[upgrade.args[0] :]
                    self._parse_without_upgrade()
                else:
                    return True
        except httptools.HttpParserError:
            return False

    def _parse_without_upgrade(self) -> None:
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            raise httptools.HttpParserError("CONNECT opens a tunnel, which cannot be ignored like an upgrade.")
        lines = [b"%b %b HTTP/%b" % (method, self.url, version)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        # The same option that uvicorn sets: bytes after the last request are ignored.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.parser.feed_data(b"\r\n".join(lines) + b"\r\n\r\n")

    def _limit_unfinished_request(self, data: bytes) -> None:
        """Limit the bytes and the time of a request that arrives in several packets."""
        self._unread_bytes = 0 if self._unread_bytes < 0 else self._unread_bytes + len(data)
        if self._unread_bytes > HEAD_BYTES_MAX:
            self._stop_reading(_refuse_head())
        elif not self._is_in_head:
            if self.cycle.keep_alive and not self._has_short_body():
                # If the response is sent before the request is complete, the connection is closed after it.
                self._may_stay_open, self.cycle.keep_alive = True, False
        elif self._head_timer is None:
            self._start_head_timer()

    def _has_short_body(self) -> bool:
        announced = dict(self.headers).get(b"content-length", b"")
        return announced.isdigit() and int(announced) <= SKIPPED_BYTES_MAX and not self.expect_100_continue

    def _is_unwatched(self) -> bool:
        """Whether no timer would close this idle connection."""
        return self.timeout_keep_alive_task is None and self._head_timer is None and self._has_responded()

    def _has_responded(self) -> bool:
        """Whether no request is open: none came yet, or the last one has its response."""
        return self.cycle is None or self.cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_between_requests = False
        self._is_in_head = True
        self._unread_bytes = -1

    def on_header(self, name: bytes, value: bytes) -> None:
        # The parser reports trailers of a chunked body here too; they are ignored.
        if self._is_in_head:
            # White space around a value is not part of it (RFC 9110); the parser removes it only before the value.
            super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            # The head is parsed again without its `Upgrade` header.
            return
        self._end_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread_bytes = -1
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_in_head:
            return
        self._is_between_requests = True
        super().on_message_complete()
        if self._may_stay_open:
            self._may_stay_open = False
            if not (self._is_stopping or self.cycle.response_started):
                self.cycle.keep_alive = True

    def _end_head(self) -> None:
        self._is_in_head = False
        if self._head_timer is not None:
            self._stop_head_timer()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn never keeps a connection that was half closed
        """Keep the connection open for responses to requests that arrived before the caller closed its side."""
        self._lingering_transport.end()
        if self._lingering_transport.is_closing() or self._has_responded():
            return False
        return self._stopped_reading or self._stop_reading(b"")

    def _stop_reading(self, refusal: bytes) -> bool:
        """Ignore further bytes, send the responses to complete requests in order, or else the refusal, and close.

        Return whether the connection stays open for such responses.
        """
        is_body_cut_off = not (self._is_between_requests or self._is_in_head)
        self._stopped_reading, self._is_between_requests = True, False
        self._stop_head_timer()
        if not self._has_responded():
            self._may_stay_open = self.cycle.keep_alive = False
            if not is_body_cut_off:
                return True
            # The last request on this connection will never have its whole body.
            if self.pipeline:
                self.pipeline[0] = (self.cycle, _refuse_incomplete_body)
                return True
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if refusal and not (is_body_cut_off and self.cycle.response_started):
            self.transport.write(refusal)
        self.transport.close()
        return False

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_WAIT_S, self._close_after_timeout)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_after_timeout(self) -> None:
        self._head_timer = None
        self._lingering_transport.end()
        if not self.transport.is_closing():
            self.transport.close()


class _UnreadRequest(msgspec.Struct, frozen=True):
    """A request whose head was not read."""

    request_id: str
    base_url: str = ""


async def _refuse_incomplete_body(_scope: Scope, _receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    await send({"type": "http.response.start", "status": 400, "headers": _UNREADABLE_HEADERS})
    await send({"type": "http.response.body", "body": _UNREADABLE.encode()})


def _refuse_head() -> bytes:
    request_id = new_request_id()
    response = problem_response(
        HeadersTooLarge("The request's first line and headers do not end."), _UnreadRequest(request_id)
    )
    start = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
    return start + response_head(response, request_id) + response.body
