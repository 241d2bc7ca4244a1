"""Bounds on what a connection may do before it has sent a whole request head.

Uvicorn's parser collects a request line and headers of any length, for as long as the caller likes. The API refuses
what is too long once it can read it (414 and 431); this ends what would never become readable.
"""

import asyncio
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regulars.http.problem import problem_bytes
from regulars.kit.errors import HeadersTooLarge
from regulars.kit.ids import new_request_id

# Above what the API answers properly about, so that only the absurd is cut off without an envelope.
HEAD_BYTES_MAX = 128 << 10
HEAD_WAIT_S = 15.0


class GuardedProtocol(HttpToolsProtocol):
    _is_in_head = False
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head:
            # Only a head that did not arrive in one piece is counted and timed, so the usual request pays nothing.
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self.transport.write(_refuse_head())
                self.transport.close()
            elif self._head_timer is None:
                self._start_timer()
        elif self._is_unwatched():
            # Empty lines before a request end uvicorn's wait for it without beginning one.
            self._start_timer()

    def _is_unwatched(self) -> bool:
        """Whether nothing would ever end this connection: no request is open, and no timer runs."""
        return self.timeout_keep_alive_task is None and self._head_timer is None and self._has_answered()

    def _has_answered(self) -> bool:
        """Whether no request is open: none came yet, or the last one has its answer."""
        return self.cycle is None or self.cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        self._end_head()
        super().on_headers_complete()

    def _end_head(self) -> None:
        self._is_in_head = False
        if self._head_timer is not None:
            self._stop_timer()

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_WAIT_S, self._give_up)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()


def _refuse_head() -> bytes:
    request_id = new_request_id()
    body = problem_bytes(HeadersTooLarge("The request's first line and headers do not end."), request_id)
    return (
        b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\nx-request-id: %b\r\n"
        b"content-type: application/problem+json\r\ncontent-length: %d\r\n\r\n%b"
    ) % (request_id.encode(), len(body), body)
