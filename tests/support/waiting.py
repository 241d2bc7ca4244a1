"""Waits for a condition that reports nothing by itself, and for the conditions that several rooms wait for."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import httpx
import psycopg

from regulars.kit.db import Database

T = TypeVar("T")
# Of a machine that has other things to do; what takes longer never happens.
SECONDS_MAX = 120.0
POLL_EVERY_S = 0.01
LOCKED = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND position(%s IN query) > 0
"""


def wait_until(
    condition: Callable[[], T | None],
    *,
    seconds: float = SECONDS_MAX,
    every_s: float = POLL_EVERY_S,
    show: Callable[[], object] | None = None,
) -> T:
    """Returns the first true value of the condition; fails after the seconds, with what `show` returns then."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, _failure(seconds, "" if show is None else show())
        time.sleep(every_s)
    return found


async def until(
    condition: Callable[[], Awaitable[T | None] | T | None],
    *,
    seconds: float = SECONDS_MAX,
    every_s: float = POLL_EVERY_S,
    show: Callable[[], object] | None = None,
) -> T:
    """Does the same in a coroutine; the condition and `show` may be plain or async functions."""
    deadline = time.monotonic() + seconds
    while not (found := await _result(condition())):
        assert time.monotonic() < deadline, _failure(seconds, "" if show is None else await _result(show()))
        await asyncio.sleep(every_s)
    return found


async def _result(returned: Awaitable[T] | T) -> T:
    return await returned if inspect.isawaitable(returned) else returned


def _failure(seconds: float, shown: object) -> str:
    return f"The condition did not hold within {seconds:g} s. {shown}".strip()


def ask_until(words: str, ask: Callable[[], httpx.Response]) -> str:
    """What is answered once it has the words; until then it is asked again, as its reader would."""

    def find_page() -> str | None:
        page = ask().text
        return page if words in page else None

    return wait_until(find_page, every_s=0.05, show=lambda: ask().text)


def wait_until_logged(log: Path, event: str) -> None:
    wait_until(lambda: event in log.read_text(), show=log.read_text)


def wait_until_gone(*pids: int) -> None:
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), show=lambda: f"Still running: {pids}.")


def wait_until_locked(database_url: str, statement: str = "") -> None:
    """Waits until a statement with these words waits for a lock in this database."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        wait_until(
            lambda: connection.execute(LOCKED, (statement,)).fetchall(),
            show=lambda: f"No statement waits for a lock: {statement}",
        )


async def until_locked(database: Database, statement: str = "", *, count: int = 1) -> list[int]:
    """Waits until so many statements with these words wait for a lock; returns the processes that run them."""

    async def find_locked() -> list[int]:
        async with database.reading() as tx:
            found = await tx.fetch_column(LOCKED, (statement,))
        return found if len(found) >= count else []

    return await until(find_locked, show=lambda: f"Fewer than {count} statements wait for a lock: {statement}")
