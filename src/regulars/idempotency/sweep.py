"""Delete what is older than 24 hours, in small transactions that hold nobody up."""

from uuid import UUID

from regulars.idempotency import queries
from regulars.idempotency.model import RETENTION
from regulars.kit.db import Database

ROWS_PER_TRANSACTION_MAX = 5_000


async def sweep(database: Database, organization_id: UUID) -> int:
    swept = 0
    while True:
        async with database.transaction() as tx:
            deleted = await queries.delete_expired(
                tx, organization_id, until=tx.now - RETENTION, at_most=ROWS_PER_TRANSACTION_MAX
            )
        swept += deleted
        if deleted < ROWS_PER_TRANSACTION_MAX:
            return swept
