"""Open a pool for the asynchronous use cases of a command that has opened the database already."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from regulars.kit.db import LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS, Database

Result = TypeVar("Result")


def run_on_pool(url: str, work: Callable[[Database], Awaitable[Result]], **timeouts_ms: int) -> Result:
    """Run an asynchronous use case; `timeouts_ms` as of `open_pool`."""

    async def run() -> Result:
        async with open_pool(url, **timeouts_ms) as database:
            return await work(database)

    return asyncio.run(run())


@contextlib.asynccontextmanager
async def open_pool(
    url: str, *, statement_timeout_ms: int = STATEMENT_TIMEOUT_MS, lock_timeout_ms: int = LOCK_TIMEOUT_MS
) -> AsyncIterator[Database]:
    """Open a small pool for the asynchronous use cases of a command."""
    database = Database(url, pool_max=2, statement_timeout_ms=statement_timeout_ms, lock_timeout_ms=lock_timeout_ms)
    await database.open()
    try:
        yield database
    finally:
        await database.close()
