"""Begin the count of a catalog that was never counted, so that its values can be suggested."""

from uuid import UUID

from regulars.catalog.counts.model import START
from regulars.catalog.model import Catalog
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid


async def begin_first_count(tx: Tx, organization_id: UUID, catalog: Catalog) -> bool:
    """Begin the count of all keys, unless there is one; return whether it is new. The worker finds it by its poll."""
    inserted = await tx.execute(
        """
        INSERT INTO catalog_counts (organization_id, id, catalog, walked_to, created_at, due_at)
        SELECT %(organization_id)s, %(id)s, %(catalog)s, %(start)s, %(now)s, %(now)s
        WHERE NOT EXISTS (
            SELECT FROM catalog_counts
            WHERE organization_id = %(organization_id)s AND catalog = %(catalog)s AND key IS NULL
        )
        """,
        {
            "organization_id": organization_id,
            "id": new_uuid(),
            "catalog": catalog.value,
            "start": START,
            "now": tx.now,
        },
    )
    return bool(inserted)
