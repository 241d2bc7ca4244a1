"""Forget what is older than 30 days, in small transactions that hold nobody up."""

from uuid import UUID

from regulars.kit.db import Database
from regulars.webhooks import queries
from regulars.webhooks.model import RETENTION

MESSAGES_PER_TRANSACTION_MAX = 1_000


async def sweep(database: Database, organization_id: UUID) -> int:
    swept = 0
    while True:
        async with database.transaction() as tx:
            ids = await queries.find_old_messages(
                tx, organization_id, until=tx.now - RETENTION, limit=MESSAGES_PER_TRANSACTION_MAX
            )
            await queries.delete_attempts(tx, organization_id, ids)
            await queries.delete_deliveries(tx, organization_id, ids)
            await queries.delete_messages(tx, organization_id, ids)
            await queries.delete_forgotten_endpoints(tx, organization_id)
        swept += len(ids)
        if len(ids) < MESSAGES_PER_TRANSACTION_MAX:
            return swept
