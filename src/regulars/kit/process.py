"""Stop signals of a process, a pipe that closes when the parent ends, and the settings of garbage collection."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable
from typing import Final

# A batch of requests or facts has tens of thousands of objects that live until its commit. A garbage collection before
# that finds nothing to free. Such collections took a twentieth of the time of a server process, and a third of the time
# in which a worker builds the columnar copies for segments.
YOUNG_OBJECTS_MAX: Final = 20_000


class Lifeline:
    """A pipe that only the parent can write to: when the parent dies, even by `kill -9`, its children read the end."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()

    def close(self) -> None:
        os.close(self.reading)
        os.close(self._writing)


def when_ended(lifeline: int, then: Callable[[], None]) -> None:
    """Call `then` when the other end of the lifeline is closed."""
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(lifeline)
        then()

    loop.add_reader(lifeline, ended)


def on_stop_signals(then: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, then)


def reduce_garbage_collection() -> None:
    """Exclude the objects made at start from garbage collection, because they stay until the end."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX)
