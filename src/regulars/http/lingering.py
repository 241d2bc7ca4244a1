"""A connection that is closed without taking its last answer back.

A socket that is closed while the caller still sends answers with a reset, and a reset throws away what the caller has
not read yet: a refusal in the middle of a body would never be heard. So the connection is closed for writing only,
and what still comes is read and thrown away, until the caller is done or has had enough time and bytes.
"""

import asyncio
from collections.abc import Callable

LINGER_S = 30.0
LINGER_BYTES_MAX = 80 << 20


class LingeringTransport:
    """Stands before the event loop's transport, and is what uvicorn's protocol writes to and closes."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, *, may_hear_more: Callable[[], bool]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._may_hear_more = may_hear_more
        # Runs while it lingers.
        self._timer: asyncio.TimerHandle | None = None
        self.is_lingering = False
        self._bytes_left = LINGER_BYTES_MAX
        self._is_over = False
        # Bound here, so that writing costs what it cost before.
        self.is_gone = transport.is_closing
        self.write = transport.write
        self.get_extra_info = transport.get_extra_info
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.unsent_bytes = transport.get_write_buffer_size

    def is_closing(self) -> bool:
        return self.is_lingering or self._transport.is_closing()

    def close(self) -> None:
        """Close once the caller has had the chance to read what was written."""
        if self.is_lingering:
            return
        is_heard_out = self._is_over or not self._may_hear_more()
        if self._transport.is_closing() or (is_heard_out and not self.unsent_bytes()):
            self._transport.close()
            return
        self.is_lingering = True
        self._timer = self._loop.call_later(LINGER_S, self.abort)
        if is_heard_out:
            # What is not sent yet still goes out, and the timer ends it if the caller never reads it.
            self._transport.close()
        else:
            self._transport.write_eof()
            self._transport.resume_reading()

    def discard(self, data: bytes) -> None:
        """Read on, for nothing."""
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            self.abort()

    def end(self) -> None:
        """Linger no more, now or later: the server stops, or the connection is gone."""
        if self._stop_lingering():
            self._transport.close()

    def abort(self) -> None:
        """Close at once, whatever was not sent yet."""
        self._stop_lingering()
        self._transport.abort()

    def _stop_lingering(self) -> bool:
        """Linger no more; tell whether it did."""
        was_lingering, self.is_lingering, self._is_over = self.is_lingering, False, True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return was_lingering
