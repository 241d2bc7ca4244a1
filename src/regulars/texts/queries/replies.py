"""The outcome of an answer decides its reply, in the transaction that stores the outcome. Texts are below the inbox,
which owns the table of replies."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx


async def decide_answered(tx: Tx, organization_id: UUID, reply_ids: Collection[UUID]) -> None:
    """Decide replies whose answer the provider has accepted. A possible opt-out is left to a user."""
    await tx.execute(
        """
        UPDATE replies SET decided = 'answered', decided_at = %(now)s
        WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[])
          AND decided IS NULL AND meaning = 'other'
        """,
        {"organization_id": organization_id, "ids": list(reply_ids), "now": tx.now},
    )
