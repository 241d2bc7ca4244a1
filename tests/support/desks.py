"""A database for tests that run use cases from outside an event loop.

It is open for all tests of a module, because new connections and their empty caches take longer than most tests.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from regulars.kit.db import Database

CONNECTIONS_MAX = 8
LOCK_TIMEOUT_MS = 20_000


@contextmanager
def open_for_desks(url: str) -> Iterator[tuple[asyncio.Runner, Database]]:
    with asyncio.Runner() as runner:
        database = Database(url, pool_max=CONNECTIONS_MAX, lock_timeout_ms=LOCK_TIMEOUT_MS)
        runner.run(database.open())
        try:
            yield runner, database
        finally:
            runner.run(database.close())


async def cancel_other_tasks() -> None:
    """Cancels tasks that a test has left in the event loop, so that they do not run in the next test."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
