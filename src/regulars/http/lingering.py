"""Close a connection without losing its last response (a lingering close).

If a socket is closed while the caller still sends, the kernel sends a reset, and the caller loses the bytes that it has
not read yet, such as a refusal in the middle of a body. So the connection is closed for writing only, and received
bytes are discarded, until the caller has finished or a limit of time or bytes is reached.
"""

import asyncio
from collections.abc import Callable

LINGER_S = 30.0
LINGER_BYTES_MAX = 80 << 20


class LingeringTransport:
    """Wraps the event loop's transport for uvicorn's protocol."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, *, may_receive_more: Callable[[], bool]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._may_receive_more = may_receive_more
        # Runs while the connection lingers.
        self._timer: asyncio.TimerHandle | None = None
        self.is_lingering = False
        self._bytes_left = LINGER_BYTES_MAX
        self._has_stopped_lingering = False
        # Methods of the wrapped transport, bound here, so that writing costs no extra call.
        self.is_gone = transport.is_closing
        self.write = transport.write
        self.get_extra_info = transport.get_extra_info
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.unsent_bytes = transport.get_write_buffer_size

    def is_closing(self) -> bool:
        return self.is_lingering or self._transport.is_closing()

    def close(self) -> None:
        """Close, at once if nothing is unsent and no more bytes can arrive, else after lingering."""
        if self.is_lingering:
            return
        is_complete = self._has_stopped_lingering or not self._may_receive_more()
        if self._transport.is_closing() or (is_complete and not self.unsent_bytes()):
            self._transport.close()
            return
        self.is_lingering = True
        self._timer = self._loop.call_later(LINGER_S, self.abort)
        if is_complete:
            # The transport still sends its buffer; the timer aborts the connection if the caller never reads.
            self._transport.close()
        else:
            self._transport.write_eof()
            self._transport.resume_reading()

    def discard(self, data: bytes) -> None:
        """Ignore received bytes, up to a limit."""
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            self.abort()

    def end(self) -> None:
        """Never linger again, because the server stops or the connection is lost."""
        if self._stop_lingering():
            self._transport.close()

    def abort(self) -> None:
        """Close at once, even if bytes are unsent."""
        self._stop_lingering()
        self._transport.abort()

    def _stop_lingering(self) -> bool:
        """Stop lingering; return whether it was lingering."""
        was_lingering, self.is_lingering, self._has_stopped_lingering = self.is_lingering, False, True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return was_lingering
