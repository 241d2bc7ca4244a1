"""The values of profile attributes as they are stored, for whoever counts them."""

from uuid import UUID

from regulars.catalog.counts.model import Stretch, ValueCount
from regulars.kit.db import Tx
from regulars.profiles import queries


class AttributeValues:
    """The attributes of profiles, in the order of the profiles' ids."""

    async def count_rows(self, tx: Tx, organization_id: UUID) -> int:
        return await queries.count_profiles(tx, organization_id)

    async def read_stretch(
        self, tx: Tx, organization_id: UUID, *, after: UUID, rows_max: int, key: str | None
    ) -> Stretch:
        rows, last = await queries.find_end_of_stretch(tx, organization_id, after=after, rows_max=rows_max)
        if last is None:
            return Stretch(0, None, [])
        if key is None:
            found = await queries.count_attribute_values(tx, organization_id, after=after, until=last)
        else:
            found = await queries.count_values_of_attribute(tx, organization_id, key, after=after, until=last)
        return Stretch(rows, last, [ValueCount(*row) for row in found])
