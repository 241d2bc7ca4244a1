"""One organization's turns at the outbox, as the worker would give them."""

from uuid import UUID

from regulars.kit.db import Database
from regulars.work.facts import Listeners
from regulars.work.outbox import OutboxQueue


async def drain(database: Database, organization_id: UUID, listeners: Listeners) -> int:
    """Hand over what is due; answer how many rows took effect for all their listeners."""
    before = await _ids(database, organization_id, "SELECT id FROM outbox WHERE organization_id = %s")
    queue = OutboxQueue(listeners)
    while await queue.take_turn(database, organization_id):
        pass
    left = await _ids(database, organization_id, "SELECT id FROM outbox WHERE organization_id = %s")
    failed = await _ids(database, organization_id, "SELECT id FROM outbox_retries WHERE organization_id = %s")
    return len(before - left - failed)


async def _ids(database: Database, organization_id: UUID, query: str) -> set[UUID]:
    async with database.reading() as tx:
        return {row[0] for row in await tx.fetch(query, (organization_id,))}  # type: ignore[arg-type]  # a literal above
