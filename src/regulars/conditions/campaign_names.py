"""The names of the campaigns that conditions refer to by their ids."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx


async def find_campaign_names(
    tx: Tx, organization_id: UUID, ids: Collection[UUID], *, newest: int = 0
) -> list[tuple[UUID, str]]:
    """Find id and name of these campaigns, and of the `newest` most recent campaigns, the most recent first."""
    return await tx.fetch(
        """
        SELECT id, name FROM campaigns
        WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[])
        UNION
        (SELECT id, name FROM campaigns WHERE organization_id = %(organization_id)s ORDER BY id DESC LIMIT %(newest)s)
        ORDER BY id DESC
        """,
        {"organization_id": organization_id, "ids": list(ids), "newest": newest},
    )
