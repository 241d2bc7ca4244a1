"""Limit connections below ASGI, and handle edge cases of HTTP that uvicorn does not handle.

Uvicorn's parser accepts a request line and headers of any length for any time, stops at an `Upgrade` header, treats
trailers as headers, fails at targets that it cannot parse, and loses responses when the caller closes its side of the
connection or is refused in the middle of a body. This subclass of uvicorn's protocol sets limits, ignores upgrades and
trailers, refuses what is not HTTP in the format of the API's errors, and sends those responses.
"""

import asyncio
from typing import cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from regulars.http import framing
from regulars.http.lingering import LingeringTransport
from regulars.http.unreadable import UNREADABLE_LOG, refusing_application
from regulars.kit import log
from regulars.kit.errors import ApiError, HeadersTooLarge, InternalError, MalformedRequest

# The request line and headers (the head). The API has a lower limit and refuses with a proper error; this limit is only
# for extreme requests.
HEAD_BYTES_MAX = 128 << 10
HEAD_WAIT_S = 15.0
# After this time without a single byte of its responses read, a caller is disconnected.
UNSENT_WAIT_S = 30.0
# A refused body that announces at most this length is read to its end, and the connection is reused.
SKIPPED_BYTES_MAX = 64 << 10

_log = log.get(__name__)


class ConnectionsState(ServerState):
    """What the connections of a server have in common."""

    # Whether the server stops, and closes each connection after its response.
    is_draining = False

    def start_draining(self) -> None:
        self.is_draining = True
        for connection in self.connections:
            if isinstance(connection, LimitedProtocol):
                connection.drain()


class LimitedProtocol(HttpToolsProtocol):
    # The state of the parser: between two requests, in the head of a request, or, if both are false, in a body.
    _is_between_requests = True
    _is_in_head = False
    # Bytes of packets that only extended an unfinished head, or trailers after a body; -1 after a packet that began a
    # request or brought a part of its body.
    _unread_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _unsent_timer: asyncio.TimerHandle | None = None
    # The beginning of a request line whose end has not arrived.
    _partial_line = b""
    # Whether the line of the request that the parser reads was checked.
    _is_line_checked = False
    # The missing bytes of a body whose length is known.
    _body_left = 0
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
        if isinstance(self.server_state, ConnectionsState):
            self._is_stopping = self.server_state.is_draining

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_watching_unsent()
        self._lingering_transport.end()
        super().connection_lost(exc)

    def drain(self) -> None:
        """Close the connection after the next response, which says so. An idle connection stays open for a request."""
        self._is_stopping = True
        if not (self._has_responded() or self.cycle.response_started):
            self.cycle.keep_alive = False

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
        refusal = self._parse(data)
        if refusal is not None:
            self._refuse(refusal)
            return
        self.on_packet_complete()
        if self._is_between_requests:
            if self._is_unwatched():
                # The packet had only empty lines, which stop uvicorn's keep-alive timer but begin no request.
                self._start_head_timer()
        else:
            self._limit_unfinished_request(data)

    def on_packet_complete(self) -> None:
        """Hook for subclasses: a packet was parsed without an error."""

    def _parse(self, data: bytes) -> ApiError | None:
        """Parse the packet; return an error if it is not HTTP."""
        try:
            self._parse_pieces(self._take_partial_line() + data)
        except ApiError as error:
            return error
        except httptools.HttpParserCallbackError as error:
            return _error_of_callback(error)
        except httptools.HttpParserError as error:
            return framing.error_of_parser(error)
        return None

    def _parse_pieces(self, data: bytes) -> None:
        """Parse the packet in pieces that end where a request may end, so that the line of the next one is checked."""
        packet, position = memoryview(data), 0
        while position < len(data):
            if self._is_between_requests:
                position = framing.skip_empty_lines(data, position)
                if position == len(data):
                    return
                if not framing.check_request_line(data, position):
                    self._store_partial_line(data[position:])
                    return
                self._is_line_checked = True
            end = framing.find_cut(data, position, is_head=self._is_in_head, body_left=self._body_left)
            self._body_left = max(0, self._body_left - (end - position))
            self._parse_piece(packet[position:end])
            position = end

    def _store_partial_line(self, line: bytes) -> None:
        """Store the beginning of a request line until the rest of it arrives."""
        self._partial_line, self._unread_bytes = line, len(line)
        self._is_between_requests, self._is_in_head = False, True

    def _take_partial_line(self) -> bytes:
        line = self._partial_line
        if line:
            self._partial_line, self._is_between_requests, self._is_in_head = b"", True, False
        return line

    def _parse_piece(self, piece: memoryview) -> None:
        """Parse a piece. A head with an `Upgrade` header is parsed again without that header."""
        while True:
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                piece = piece[upgrade.args[0] :]
                self._parse_without_upgrade()
            else:
                return

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
        if not self._partial_line:
            self._unread_bytes = 0 if self._unread_bytes < 0 else self._unread_bytes + len(data)
        if self._unread_bytes > HEAD_BYTES_MAX:
            self._refuse(self._head_error())
        elif not self._is_in_head:
            if self.cycle.keep_alive and not self._has_short_body():
                # If the response is sent before the request is complete, the connection is closed after it.
                self._may_stay_open, self.cycle.keep_alive = True, False
        elif self._head_timer is None:
            self._start_head_timer()

    def _head_error(self) -> ApiError:
        if self._partial_line:
            return framing.target_too_long()
        return HeadersTooLarge("The request's headers do not end.")

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
        if not self._is_line_checked:
            raise MalformedRequest("A request begins before the one before it has ended.")
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
        framing.check_target(self.url)
        self._body_left = framing.read_body_length(self.headers, http_version=self.parser.get_http_version())
        self._end_head()
        self.on_head_checked()

    def on_head_checked(self) -> None:
        """Hook for subclasses: the head may be handled."""
        previous = self.cycle
        super().on_headers_complete()
        if self._is_stopping:
            if self.pipeline and not previous.response_started:
                # Only the last response closes the connection.
                previous.keep_alive = True
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._unread_bytes = -1
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_in_head:
            return
        self._is_between_requests = True
        self._is_line_checked = False
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
        if self._stopped_reading:
            return True
        if not self.is_body_cut_off():
            self._stop_reading()
            self._may_stay_open = self.cycle.keep_alive = False
            return True
        if self.pipeline:
            self._refuse(MalformedRequest("The request ended before its body was complete."))
            return True
        self._stop_reading()
        self._cut_off()
        self.transport.close()
        return False

    def is_body_cut_off(self) -> bool:
        """Whether the body of a request that was passed to uvicorn is incomplete."""
        return not (self._is_between_requests or self._is_in_head)

    def _stop_reading(self) -> None:
        """Ignore further bytes. The connection is closed after the responses to the requests before them."""
        self._stopped_reading, self._is_between_requests = True, False
        self._stop_head_timer()

    def _refuse(self, error: ApiError) -> None:
        """Send the responses to the complete requests before, then the refusal, and close."""
        UNREADABLE_LOG.record(error.code)
        is_body_cut_off = self.is_body_cut_off()
        is_head = self._is_in_head and not self._partial_line and self.parser.get_method() == b"HEAD"
        self._stop_reading()
        if is_body_cut_off and not self._cut_off():
            self.transport.close()
            return
        # The refusal is the response to a request of its own, so that uvicorn sends it in its turn.
        super().on_message_begin()
        self.url, self.app = b"/", refusing_application(error)
        super().on_headers_complete()
        self.scope["method"] = "HEAD" if is_head else "GET"
        self.cycle.keep_alive = False

    def _cut_off(self) -> bool:
        """End the request whose body will never be complete; return False if it has a response already."""
        if self.pipeline:
            # It waits for the response to an earlier request, and was not started.
            self.pipeline.popleft()
            return True
        if self.cycle.response_started:
            return False
        # Uvicorn sends nothing of a disconnected request, and starts the next one.
        self.cycle.disconnected = self.cycle.response_complete = True
        self.cycle.message_event.set()
        return True

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


def _error_of_callback(error: httptools.HttpParserCallbackError) -> ApiError:
    """Return the refusal that a callback of the parser raised; anything else that it raises is a bug of ours."""
    cause = error.__context__
    if isinstance(cause, ApiError):
        return cause
    _log.error("http.failed", exc_info=cause)
    return InternalError("Something broke on our side.")
