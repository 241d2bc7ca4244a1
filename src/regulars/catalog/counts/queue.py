"""What the worker does for the catalogs: counting values, bite by bite."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from regulars.catalog.counts import queries
from regulars.catalog.counts.batch import take_bite
from regulars.catalog.counts.model import Count, Values
from regulars.catalog.counts.request import QUEUE
from regulars.catalog.model import Catalog
from regulars.kit.db import Tx
from regulars.work.queue import Due, RowQueue, Schedule


class CountQueue(RowQueue[Count]):
    """Counts that are due their next bite. An organization counts one thing at a time."""

    name = QUEUE
    due = Due(table="catalog_counts")
    schedule = Schedule(waits_s=(5, 60, 600))
    bite_rows = 1

    def __init__(self, values: Mapping[Catalog, Values]) -> None:
        self._values = values

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[Count]:
        return await queries.take_due_counts(tx, organization_id, limit=limit)

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[Count]) -> None:
        for count in rows:
            await take_bite(tx, organization_id, count, self._values[count.catalog])

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: Count, *, attempts: int, due_at: datetime | None
    ) -> None:
        await queries.postpone_count(tx, organization_id, row.id, attempts=attempts, due_at=due_at)
