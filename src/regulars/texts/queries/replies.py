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


async def reopen_unanswered(tx: Tx, organization_id: UUID, reply_ids: Collection[UUID]) -> None:
    """Reopen answered replies of which the provider has no answer that is on its way or arrived."""
    if not reply_ids:
        return
    await tx.execute(
        """
        UPDATE replies SET decided = NULL, decided_by = NULL, decided_at = NULL
        WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[]) AND decided = 'answered'
          AND NOT EXISTS (
              SELECT FROM texts
              WHERE organization_id = %(organization_id)s AND origin_kind = 'answer' AND origin_id = replies.id
                AND state IN ('sent', 'delivered')
          )
        """,
        {"organization_id": organization_id, "ids": list(reply_ids)},
    )
