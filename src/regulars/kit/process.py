"""Handle stop signals, detect the end of the parent process, and configure garbage collection."""

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import Callable
from typing import Final

# New objects after which Python collects garbage. A batch has tens of thousands of objects that live until its commit,
# so a collection before that finds nothing to free. With Python's default, collections took a twentieth of the time of
# a server process, and a third of the time in which a worker builds the columnar copies of customers and sales.
YOUNG_OBJECTS_MAX: Final = 20_000
SIGNALS_READ: Final = 64


class Lifeline:
    """A pipe that only the parent writes to: when the parent dies, even by `kill -9`, its children read end of file."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()

    def close(self) -> None:
        os.close(self.reading)
        os.close(self._writing)


class ReadySignal:
    """A pipe into which every child writes a byte once it has started."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)

    async def wait(self, children: int) -> None:
        """Wait until so many children have started, or one of them several times."""
        loop, started, have_started = asyncio.get_running_loop(), 0, asyncio.Event()

        def on_readable() -> None:
            nonlocal started
            with contextlib.suppress(BlockingIOError):
                started += len(os.read(self._reading, SIGNALS_READ))
            if started >= children:
                have_started.set()

        if children:
            loop.add_reader(self._reading, on_readable)
            try:
                await have_started.wait()
            finally:
                loop.remove_reader(self._reading)

    def close(self) -> None:
        os.close(self._reading)
        os.close(self.writing)


def send_ready(descriptor: int | None) -> None:
    """Signal to the parent that this process has started; `descriptor` is the writing end of its `ReadySignal`."""
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.write(descriptor, b"1")


def on_parent_exit(lifeline: int, callback: Callable[[], None]) -> None:
    """Call `callback` when the parent has ended; `lifeline` is the reading end of its pipe."""
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        loop.remove_reader(lifeline)
        callback()

    loop.add_reader(lifeline, on_readable)


class Stop:
    """The request to stop this process. A second signal hurries it: callers are no longer waited for."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.hurried = asyncio.Event()

    def request(self) -> None:
        (self.hurried if self.requested.is_set() else self.requested).set()

    def hurry(self) -> None:
        self.requested.set()
        self.hurried.set()


def on_stop_signals(callback: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, callback)


def reduce_garbage_collection() -> None:
    """Collect garbage less often, and exclude the objects that exist at the start, because they live until the end."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX)
