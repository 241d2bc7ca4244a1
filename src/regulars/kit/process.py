"""When a process should stop: signals, and a pipe that ends when the parent does."""

import asyncio
import os
import signal
from collections.abc import Callable


class Lifeline:
    """A pipe that only the parent can write to: when the parent dies, even by `kill -9`, its children read the end."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()

    def close(self) -> None:
        os.close(self.reading)
        os.close(self._writing)


def when_ended(lifeline: int, then: Callable[[], None]) -> None:
    """Call `then` once the other end of the lifeline is gone."""
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(lifeline)
        then()

    loop.add_reader(lifeline, ended)


def on_stop_signals(then: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, then)
