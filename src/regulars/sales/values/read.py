"""Read the values of a stretch of tickets."""

from uuid import UUID

from regulars.catalog.counts.model import Stretch, ValueCount
from regulars.kit.db import Tx
from regulars.sales.values import queries


class PropertyValues:
    """The properties of the products on the lines of tickets, in the order of the tickets' ids."""

    async def count_rows(self, tx: Tx, organization_id: UUID) -> int:
        return await queries.count_sales(tx, organization_id)

    async def read_stretch(
        self, tx: Tx, organization_id: UUID, *, after: UUID, rows_max: int, key: str | None
    ) -> Stretch:
        rows, last = await queries.find_end_of_stretch(tx, organization_id, after=after, rows_max=rows_max)
        if last is None:
            return Stretch(0, None, [])
        found = await queries.count_property_values(tx, organization_id, key, after=after, until=last)
        return Stretch(rows, last, [ValueCount(*row) for row in found])
