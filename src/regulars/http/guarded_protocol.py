"""What a connection may do, and what it is owed, whatever the requests on it say.

Uvicorn's parser collects a request line and headers of any length for as long as the caller likes, stops at an offer
to upgrade, takes trailers for headers, and loses answers when the caller closes its side or is refused in the middle
of a body. This layer sets bounds where there were none, and reads such requests as what they are.
"""

import asyncio
from typing import cast

import httptools
import msgspec
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regulars.http.answer_head import answer_head
from regulars.http.lingering import LingeringTransport
from regulars.http.problem import problem_answer
from regulars.kit.errors import HeadersTooLarge
from regulars.kit.ids import new_request_id

# Above what the API answers properly about, so that only the absurd is cut off without an envelope.
HEAD_BYTES_MAX = 128 << 10
HEAD_WAIT_S = 15.0
# How long a caller may leave its answers lying without taking a single byte of them.
UNSENT_WAIT_S = 30.0
# The rest of a body that was not waited for is skipped and the connection kept, if it is announced and this short.
SKIPPED_BYTES_MAX = 64 << 10

_UNREADABLE = "Invalid HTTP request received."
_UNREADABLE_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(_UNREADABLE))]
_UNREADABLE_ANSWER = b"".join(
    [
        b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n",
        *[b"%b: %b\r\n" % header for header in _UNREADABLE_HEADERS],
        b"\r\n" + _UNREADABLE.encode(),
    ]
)


class GuardedProtocol(HttpToolsProtocol):
    # Where the parser stands: between two requests, or in the head of one; otherwise in a body.
    _is_between = True
    _is_in_head = False
    # Bytes of packets that only added to something unfinished, a head or what follows a body's last chunk; below zero
    # once a packet did bring a request further.
    _unread_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _unsent_timer: asyncio.TimerHandle | None = None
    # Whether nothing that comes is read any more.
    _is_deaf = False
    _is_stopping = False
    # Whether the connection may be kept as soon as the body that is on its way has arrived.
    _may_keep = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._link = LingeringTransport(
            cast("asyncio.Transport", transport), self.loop, may_hear_more=lambda: not self._is_between
        )
        super().connection_made(cast("asyncio.Transport", self._link))
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_watching_unsent()
        self._link.end()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        self._is_stopping = True
        self._link.end()
        super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unsent(self._link.unsent_bytes())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_watching_unsent()

    def _watch_unsent(self, unsent: int) -> None:
        self._unsent_timer = self.loop.call_later(UNSENT_WAIT_S, self._look_at_unsent, unsent)

    def _look_at_unsent(self, before: int) -> None:
        """End a connection whose caller takes nothing; one that takes its answer slowly may go on."""
        unsent = self._link.unsent_bytes()
        if unsent < before:
            self._watch_unsent(unsent)
        else:
            self._link.abort()

    def _stop_watching_unsent(self) -> None:
        if self._unsent_timer is not None:
            self._unsent_timer.cancel()
            self._unsent_timer = None

    def data_received(self, data: bytes) -> None:
        if self._is_deaf or self._link.is_lingering:
            self._link.discard(data)
            return
        self._unset_keepalive_if_required()
        is_readable = self._feed(data)
        self.on_packet_complete()
        if not is_readable:
            self.logger.warning(_UNREADABLE)
            self._hear_no_more(_UNREADABLE_ANSWER)
        elif self._is_between:
            if self._is_unwatched():
                # Empty lines before a request end uvicorn's wait for it without beginning one.
                self._start_timer()
        else:
            self._watch_pieces(data)

    def on_packet_complete(self) -> None:
        """Called when all that came was parsed, before anything is done about it."""

    def _feed(self, data: bytes) -> bool:
        """Parse the packet, if it can be; where the parser stops at an offer to upgrade, the head goes without it."""
        rest: bytes | memoryview = data
        try:
            while True:
                try:
                    self.parser.feed_data(rest)
                except httptools.HttpParserUpgrade as stopped:
                    rest = memoryview(rest)[stopped.args[0] :]
                    self._begin_without_offer()
                else:
                    return True
        except httptools.HttpParserError:
            return False

    def _begin_without_offer(self) -> None:
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            raise httptools.HttpParserError("A tunnel is not an offer, and cannot be ignored.")
        lines = [b"%b %b HTTP/%b" % (method, self.url, version)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        # As uvicorn sets it: what follows a last request is passed over.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.parser.feed_data(b"\r\n".join(lines) + b"\r\n\r\n")

    def _watch_pieces(self, data: bytes) -> None:
        """Count and time a request that did not arrive in one piece; the usual one pays nothing for this."""
        self._unread_bytes = 0 if self._unread_bytes < 0 else self._unread_bytes + len(data)
        if self._unread_bytes > HEAD_BYTES_MAX:
            self._hear_no_more(_refusal_of_head())
        elif not self._is_in_head:
            if self.cycle.keep_alive and not self._rest_is_short():
                # An answer that leaves before its request arrived whole is the last one.
                self._may_keep, self.cycle.keep_alive = True, False
        elif self._head_timer is None:
            self._start_timer()

    def _rest_is_short(self) -> bool:
        announced = dict(self.headers).get(b"content-length", b"")
        return announced.isdigit() and int(announced) <= SKIPPED_BYTES_MAX and not self.expect_100_continue

    def _is_unwatched(self) -> bool:
        """Whether nothing would ever end this connection: no request is open, and no timer runs."""
        return self.timeout_keep_alive_task is None and self._head_timer is None and self._has_answered()

    def _has_answered(self) -> bool:
        """Whether no request is open: none came yet, or the last one has its answer."""
        return self.cycle is None or self.cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_between = False
        self._is_in_head = True
        self._unread_bytes = -1

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers of a chunked body come this way too; whatever they say, it was not said in the head.
        if self._is_in_head:
            # White space around a value is no part of it (RFC 9110); the parser leaves what stands behind it.
            super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            # The head comes again, without the offer.
            return
        self._end_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread_bytes = -1
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_in_head:
            return
        self._is_between = True
        super().on_message_complete()
        if self._may_keep:
            self._may_keep = False
            if not (self._is_stopping or self.cycle.response_started):
                self.cycle.keep_alive = True

    def _end_head(self) -> None:
        self._is_in_head = False
        if self._head_timer is not None:
            self._stop_timer()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn never keeps a connection that was half closed
        """Keep the connection for the answers that are due to a caller who closed its own side."""
        self._link.end()
        if self._link.is_closing() or self._has_answered():
            return False
        return self._is_deaf or self._hear_no_more(b"")

    def _hear_no_more(self, refusal: bytes) -> bool:
        """Read nothing from here on: give the answers that are due, or else the refusal, and close.

        Whole requests that came before are answered first, and in their order. Tell whether there are any.
        """
        is_cut = not (self._is_between or self._is_in_head)
        self._is_deaf, self._is_between = True, False
        self._stop_timer()
        if not self._has_answered():
            self._may_keep = self.cycle.keep_alive = False
            if not is_cut:
                return True
            # The body of the newest request will never be whole.
            if self.pipeline:
                self.pipeline[0] = (self.cycle, _refuse_cut_body)
                return True
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if refusal and not (is_cut and self.cycle.response_started):
            self.transport.write(refusal)
        self.transport.close()
        return False

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_WAIT_S, self._give_up)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        self._link.end()
        if not self.transport.is_closing():
            self.transport.close()


class _Unknown(msgspec.Struct, frozen=True):
    """A request whose head was not read."""

    request_id: str
    address: str = ""


async def _refuse_cut_body(_scope: Scope, _receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    await send({"type": "http.response.start", "status": 400, "headers": _UNREADABLE_HEADERS})
    await send({"type": "http.response.body", "body": _UNREADABLE.encode()})


def _refusal_of_head() -> bytes:
    request_id = new_request_id()
    answer = problem_answer(HeadersTooLarge("The request's first line and headers do not end."), _Unknown(request_id))
    start = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
    return start + answer_head(answer, request_id) + answer.body
