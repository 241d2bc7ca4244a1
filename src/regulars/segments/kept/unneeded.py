"""End columns that were begun for a draft when no segment came of it: they cost every write and every backup."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database
from regulars.segments import queries as columns
from regulars.segments.columns.life import settle
from regulars.segments.kept import queries

# From the beginning of the build; whoever writes the first segment has a day to save it.
UNNEEDED_AFTER: Final = timedelta(days=1)


async def end_unneeded(database: Database, organization_id: UUID) -> None:
    """One look is enough: from the first segment on, it is the deletion of the last one that ends the columns."""
    async with database.transaction() as tx:
        await queries.lock_segments(tx, organization_id)
        if not await columns.lock_free_state(tx, organization_id):
            # A batch of the build or the feeder is at it; the next look comes.
            return
        state = await columns.find_state(tx, organization_id)
        if state is None or state.fenced_at is None or state.fenced_at > tx.now - UNNEEDED_AFTER:
            return
        if not await queries.count_segments(tx, organization_id):
            await settle(tx, organization_id, is_needed=False)
