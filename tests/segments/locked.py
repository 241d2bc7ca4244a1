"""Wait until a statement waits for a lock."""

import asyncio
from time import monotonic

from regulars.kit.db import Database

WAIT_S = 60.0


async def until_locked(database: Database, statement: str) -> None:
    """Until a statement with these words waits for a lock in this database."""
    until = monotonic() + WAIT_S
    while True:
        async with database.transaction() as tx:
            if await tx.fetch(
                "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
                " AND position(%s in query) > 0",
                (statement,),
            ):
                return
        assert monotonic() < until, f"No statement waits for a lock: {statement}."
        await asyncio.sleep(0.02)
