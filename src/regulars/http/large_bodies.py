"""Decode large request bodies in a thread, a limited number of bytes at a time, and return the memory afterwards.

Decoding turns a body of 8 MiB into small objects of several times its size. Many bodies decoded at once would take more
memory than anything else in the process, and the allocator would not return it, because a memory page with one live
object stays allocated. So a body counts towards the limit until it has its response.
"""

import asyncio
import ctypes
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

# Decoding more than this on the event loop would delay other requests noticeably.
LARGE_BYTES: Final = 256 << 10
# Two of the largest bodies: one is written to the database while the next is decoded.
CAPACITY_BYTES: Final = 16 << 20
# Memory is returned to the system three times after a large body, with these pauses: usually all bodies have their
# response at the first time, but on a busy machine some do not.
TRIM_AFTER_S: Final = (10.0, 15.0, 25.0)

T = TypeVar("T")


class LargeBodies:
    """Limits the large bodies in memory; there is one object per process."""

    def __init__(self) -> None:
        # One at a time: decoding holds the interpreter lock, so a second thread would take memory and save no time.
        self._decoding = asyncio.Semaphore(1)
        self._capacity = asyncio.Semaphore(CAPACITY_BYTES // LARGE_BYTES)
        self._queue_lock = asyncio.Lock()
        self._trim_timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def admitted(self, size: int) -> AsyncIterator[None]:
        """Wait, in the order of arrival, for capacity for a body of this size; use it during the `with` block."""
        if size <= LARGE_BYTES:
            yield
            return
        taken = 0
        try:
            # The first body in the queue takes all capacity that becomes free until it has enough, so that smaller
            # bodies cannot starve it.
            async with self._queue_lock:
                while taken < min(size, CAPACITY_BYTES) // LARGE_BYTES:
                    await self._capacity.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self._capacity.release()
            self._trim_later()

    async def decode(self, decode: Callable[[Any], T], request: Any) -> T:
        await self._decoding.acquire()
        running = asyncio.ensure_future(asyncio.to_thread(decode, request))
        # A thread cannot be stopped: it keeps the semaphore even if its request was cancelled.
        running.add_done_callback(self._end_decoding)
        return await asyncio.shield(running)

    def _end_decoding(self, decoded: asyncio.Future[Any]) -> None:
        self._decoding.release()
        if not decoded.cancelled():
            # Read the exception, because asyncio would log that of a cancelled request as never retrieved.
            decoded.exception()

    def _trim_later(self, trims_done: int = 0) -> None:
        if self._trim_timer is not None:
            self._trim_timer.cancel()
        if trims_done < len(TRIM_AFTER_S):
            loop = asyncio.get_running_loop()
            self._trim_timer = loop.call_later(TRIM_AFTER_S[trims_done], self._trim, trims_done)

    def _trim(self, trims_done: int) -> None:
        asyncio.get_running_loop().run_in_executor(None, _return_memory)
        self._trim_later(trims_done + 1)


def _return_memory() -> None:
    """Collect cycles, and return free memory to the system: glibc keeps it until `malloc_trim` is called."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
