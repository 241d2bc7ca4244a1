"""Counts the pages of 8 kB that a session of PostgreSQL reads, from memory or disk."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from regulars.kit.db import Database, Tx

T = TypeVar("T")


async def count_pages(database: Database, read: Callable[[Tx], Awaitable[T]]) -> tuple[T, int]:
    """The answer of `read`, and the pages that it read. The pool of the database has one connection."""
    before = await _read_counter(database)
    async with database.reading() as tx:
        answer = await read(tx)
    return answer, await _read_counter(database) - before


async def _read_counter(database: Database) -> int:
    async with database.reading() as tx:
        await tx.fetch("SELECT pg_stat_force_next_flush()")
    async with database.reading() as tx:
        found: int = await tx.fetch_value(
            "SELECT sum(coalesce(hits, 0) + coalesce(reads, 0))::bigint FROM pg_stat_get_backend_io(pg_backend_pid())"
        )
    return found
