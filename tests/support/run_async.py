"""Runs a coroutine, or a use case, on a new thread, because the thread of a browser test already has an event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from regulars.kit.db import Database, Tx

T = TypeVar("T")


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def in_transaction(database_url: str, act: Callable[[Tx], Awaitable[T]]) -> T:
    async def run() -> T:
        database = Database(database_url, pool_max=2)
        await database.open()
        try:
            async with database.transaction() as tx:
                return await act(tx)
        finally:
            await database.close()

    return run_async(run())
