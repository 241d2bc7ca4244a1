"""Delete the addresses of visitors from the audit log when their time is over; the acts stay, and the chain holds."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.accounts.audit import queries
from regulars.kit.db import Database

ROWS_PER_TRANSACTION_MAX: Final = 1_000


async def sweep_addresses(database: Database, organization_id: UUID, *, keep: timedelta) -> int:
    swept = 0
    while True:
        async with database.transaction() as tx:
            deleted = await queries.delete_addresses_before(
                tx, organization_id, until=tx.now - keep, at_most=ROWS_PER_TRANSACTION_MAX
            )
        swept += deleted
        if deleted < ROWS_PER_TRANSACTION_MAX:
            return swept
