"""Decoding what is large: beside the event loop, a bounded amount at a time, and with the memory given back afterwards.

A body of 8 MiB becomes several times its size in small objects. Decoded all at once, a crowd of them would take more
memory than anything else the process ever does, and the allocator would keep what they left free: a page that holds one
object of somebody who stays is not given back. So a body keeps its room until it has its answer.
"""

import asyncio
import ctypes
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

# Decoding more than this takes long enough to be noticed by everybody else's requests.
LARGE_BYTES: Final = 256 << 10
# Two of the largest: one is written while the next is decoded.
ROOM_BYTES: Final = 16 << 20
# By the first the last of them has its answer, usually; on a machine that is busy some are still being written then.
TIDY_AFTER_S: Final = (10.0, 15.0, 25.0)

T = TypeVar("T")


class LargeBodies:
    """One per process."""

    def __init__(self) -> None:
        # Decoding holds the interpreter: a second one at the same time would take memory and save no time.
        self._turn = asyncio.Semaphore(1)
        self._room = asyncio.Semaphore(ROOM_BYTES // LARGE_BYTES)
        self._door = asyncio.Lock()
        self._tidying: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def admitted(self, size: int) -> AsyncIterator[None]:
        """Wait until there is room for a body of this size, in the order of arrival, and keep it until the answer."""
        if size <= LARGE_BYTES:
            yield
            return
        taken = 0
        try:
            # Whoever is at the door takes what becomes free until it is enough; those behind it cannot starve it.
            async with self._door:
                while taken < min(size, ROOM_BYTES) // LARGE_BYTES:
                    await self._room.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self._room.release()
            self._tidy_later()

    async def decode(self, decode: Callable[[Any], T], request: Any) -> T:
        await self._turn.acquire()
        running = asyncio.ensure_future(asyncio.to_thread(decode, request))
        # A thread cannot be stopped: it keeps its turn, also when nobody waits for it any more.
        running.add_done_callback(self._end_turn)
        return await asyncio.shield(running)

    def _end_turn(self, decoded: asyncio.Future[Any]) -> None:
        self._turn.release()
        if not decoded.cancelled():
            # Asked for, so that a refusal which nobody waits for any more is not reported as an accident.
            decoded.exception()

    def _tidy_later(self, times_done: int = 0) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
        if times_done < len(TIDY_AFTER_S):
            loop = asyncio.get_running_loop()
            self._tidying = loop.call_later(TIDY_AFTER_S[times_done], self._tidy, times_done)

    def _tidy(self, times_done: int) -> None:
        asyncio.get_running_loop().run_in_executor(None, _give_memory_back)
        self._tidy_later(times_done + 1)


def _give_memory_back() -> None:
    """Free what only refers to itself, and return what is free to the system: glibc keeps it until it is told to."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
