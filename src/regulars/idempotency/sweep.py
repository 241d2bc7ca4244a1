"""Delete what is older than 24 hours, in small transactions that hold nobody up."""

from datetime import datetime
from uuid import UUID

from regulars.idempotency import queries
from regulars.idempotency.model import RETENTION
from regulars.kit import failpoint
from regulars.kit.db import Database

ROWS_PER_TRANSACTION_MAX = 5_000
# One look finds what many small transactions delete: a look of its own for each would read the deleted rows again.
ROWS_PER_LOOK_MAX = 200_000


async def sweep(database: Database, organization_id: UUID) -> int:
    """Gives how many were deleted. Its time grows with their number, however many there are."""
    swept = 0
    while True:
        async with database.transaction() as tx:
            until = tx.now - RETENTION
            places = await queries.find_places_of_expired(tx, organization_id, until=until, at_most=ROWS_PER_LOOK_MAX)
        deleted = await _delete(database, organization_id, places, until=until)
        swept += deleted
        # What another transaction holds is left to the next sweep, and must not be looked for again and again.
        if len(places) < ROWS_PER_LOOK_MAX or deleted == 0:
            return swept


async def _delete(database: Database, organization_id: UUID, places: list[str], *, until: datetime) -> int:
    deleted = 0
    for first in range(0, len(places), ROWS_PER_TRANSACTION_MAX):
        async with database.transaction() as tx:
            some = places[first : first + ROWS_PER_TRANSACTION_MAX]
            deleted += await queries.delete_expired(tx, organization_id, some, until=until)
            failpoint.hit("sweep", tx.connection.cut_off)
    return deleted
