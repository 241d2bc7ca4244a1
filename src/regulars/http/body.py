"""Read request bodies within time limits, and within one memory limit for all bodies of the process."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from starlette.types import Receive

from regulars.kit.errors import PayloadTooLarge, RequestTimeout, Unavailable

BODIES_BYTES_MAX = 128 << 20

_CLOSE = ((b"connection", b"close"),)


@dataclass(frozen=True, slots=True)
class BodyTimeouts:
    """How slow a body may be. It is refused after `silence_s` without a byte, and after `total_s` in any case."""

    silence_s: float = 15.0
    # After this time, the average rate since the start must be at least the minimum.
    grace_s: float = 15.0
    bytes_per_s_min: int = 10_000
    total_s: float = 120.0

    def deadline(self, *, started: float, last_received_at: float, received: int) -> float:
        """Return the time at which the body is refused if nothing more arrives."""
        too_slow_at = started + max(self.grace_s, received / self.bytes_per_s_min)
        return min(last_received_at + self.silence_s, too_slow_at, started + self.total_s)


BODY_TIMEOUTS = BodyTimeouts()


class Bodies:
    """The bodies of all requests in this process that have no response yet."""

    def __init__(self, timeouts: BodyTimeouts) -> None:
        self._timeouts = timeouts
        self._bytes = 0

    async def read(self, receive: Receive, *, bytes_max: int) -> bytes:
        """Return the whole body, or raise when it grows too large or stalls. The caller must `release` the body."""
        chunks: list[bytes] = []
        received = 0
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(self._timeouts.silence_s) as timer:
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestTimeout("The caller hung up before the body was complete.", headers=_CLOSE)
                    chunk: bytes = message.get("body", b"")
                    received += len(chunk)
                    self._bytes += len(chunk)
                    if received > bytes_max:
                        raise too_large(bytes_max)
                    if self._bytes > BODIES_BYTES_MAX:
                        raise _no_capacity()
                    if not message.get("more_body", False):
                        return b"".join([*chunks, chunk]) if chunks else chunk
                    chunks.append(chunk)
                    timer.reschedule(
                        self._timeouts.deadline(started=started, last_received_at=loop.time(), received=received)
                    )
        except BaseException as error:
            self._bytes -= received
            if isinstance(error, TimeoutError):
                raise RequestTimeout("The body stalled; send it without pauses.", headers=_CLOSE) from None
            raise

    async def replace(self, body: bytes, replacement: Awaitable[bytes]) -> bytes:
        """Count a replacement, such as the decompressed body, instead of the body that was read. If awaiting it fails
        or the memory limit is reached, neither body is counted."""
        try:
            new_body = await replacement
        except BaseException:
            self.release(body)
            raise
        self._bytes += len(new_body) - len(body)
        if self._bytes > BODIES_BYTES_MAX:
            self.release(new_body)
            raise _no_capacity()
        return new_body

    def release(self, body: bytes) -> None:
        self._bytes -= len(body)


def _no_capacity() -> Unavailable:
    return Unavailable("Too many large bodies are being read; try again.")


def too_large(bytes_max: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"A body here may have {bytes_max} bytes.")
