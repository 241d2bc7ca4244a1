"""Databases whose connections stay open between calls, because to open one takes longer than most calls."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from regulars.kit.db import Database, Tx

T = TypeVar("T")
# For a test with a database of its own beside the one that tests share.
IDLE_MAX = 2


class OpenDatabase:
    """Runs use cases on its own thread, because the thread of a browser test already has an event loop."""

    def __init__(self, url: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._runner = asyncio.Runner()
        self._database = Database(url, pool_max=2)

    def run(self, act: Callable[[Database], Awaitable[T]]) -> T:
        async def run() -> T:
            try:
                return await act(self._database)
            finally:
                await cancel_other_tasks()

        return self._thread.submit(self._runner.run, run()).result()

    def close(self) -> None:
        self.run(Database.close)
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


async def cancel_other_tasks() -> None:
    """Cancels tasks that a test has left in the event loop, so that they do not run in the next test."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# By URL, the last used one last.
_idle: dict[str, OpenDatabase] = {}


@contextmanager
def open_database(url: str) -> Iterator[OpenDatabase]:
    """Lends an open database to one caller at a time."""
    opened = _idle.pop(url, None) or OpenDatabase(url)
    try:
        yield opened
    finally:
        close_idle(url)
        _idle[url] = opened
        if len(_idle) > IDLE_MAX:
            close_idle(next(iter(_idle)))


def close_idle(*urls: str) -> None:
    """Closes these databases, or all."""
    for url in urls or list(_idle):
        if opened := _idle.pop(url, None):
            opened.close()


def in_transaction(database_url: str, act: Callable[[Tx], Awaitable[T]]) -> T:
    async def run(database: Database) -> T:
        async with database.transaction() as tx:
            return await act(tx)

    with open_database(database_url) as opened:
        return opened.run(run)
