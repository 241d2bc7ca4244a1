"""Forget what is older than seven days."""

from uuid import UUID

from regulars.kit.db import Database
from regulars.request_log import queries
from regulars.request_log.model import RETENTION

ENTRIES_PER_TRANSACTION_MAX = 5_000


async def sweep(database: Database, organization_id: UUID) -> int:
    swept = 0
    while True:
        async with database.transaction() as tx:
            until = tx.now - RETENTION
            deleted = await queries.delete_entries_before(
                tx, organization_id, until=until, at_most=ENTRIES_PER_TRANSACTION_MAX
            )
            await queries.delete_counts_before(tx, organization_id, until=until)
        swept += deleted
        if deleted < ENTRIES_PER_TRANSACTION_MAX:
            return swept
