"""A database whose connections stay open between calls, because to open one takes longer than most calls."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from regulars.kit.db import Database

T = TypeVar("T")


class OpenDatabase:
    """Runs use cases on its own thread, because the thread of a browser test already has an event loop."""

    def __init__(self, url: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._runner = asyncio.Runner()
        self._database = Database(url, pool_max=2)

    def run(self, act: Callable[[Database], Awaitable[T]]) -> T:
        async def run() -> T:
            return await act(self._database)

        return self._thread.submit(self._runner.run, run()).result()

    def close(self) -> None:
        self.run(Database.close)
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


@contextmanager
def open_database(url: str) -> Iterator[OpenDatabase]:
    opened = OpenDatabase(url)
    try:
        yield opened
    finally:
        opened.close()
