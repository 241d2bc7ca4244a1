"""Decoding what is large: beside the event loop, few at a time, and with the memory given back afterwards.

A body of 8 MiB becomes several times its size in small objects. Decoded all at once, a crowd of them would take more
memory than anything else the process ever does, and the allocator would keep what they left free.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from typing import Any, Final, TypeVar

# Decoding more than this takes long enough to be noticed by everybody else's requests.
LARGE_BYTES: Final = 256 << 10
# They hold the interpreter while they are decoded, so a second one would take memory and save no time.
AT_ONCE: Final = 1
# By the first the last of them has its answer, usually; on a machine that is busy some are still being written then.
TIDY_AFTER_S: Final = (10.0, 15.0, 25.0)

T = TypeVar("T")


class LargeBodies:
    """One per process."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._tidying: asyncio.TimerHandle | None = None

    async def decode(self, decode: Callable[[Any], T], request: Any) -> T:
        async with self._turns:
            try:
                return await asyncio.to_thread(decode, request)
            finally:
                self._tidy_later()

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
