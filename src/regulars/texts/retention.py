"""Delete texts after 25 months. Daily totals remain."""

from datetime import datetime
from uuid import UUID

from regulars.kit.db import Tx
from regulars.texts import text_rows as texts


async def delete_old_texts(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    """Delete old texts, and the copies that the simulator (a provider that sends nothing) stored."""
    ids = await tx.fetch_column(
        """
        DELETE FROM texts
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND created_at < %(before)s AND due_at IS NULL
            ORDER BY created_at
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING id
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )
    await texts.delete_simulator_texts(tx, organization_id, ids)
    return len(ids)
