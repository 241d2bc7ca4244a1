"""The SQL of drafts."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx


class DraftRow(NamedTuple):
    based_on: int
    revision: int
    definition: str
    changed_at: datetime | None
    changed_by: str | None


async def find_draft(tx: Tx, organization_id: UUID, journey_id: UUID) -> DraftRow | None:
    rows = await tx.fetch(
        """
        SELECT based_on, revision, definition::text, changed_at, changed_by FROM journey_drafts
        WHERE organization_id = %s AND journey_id = %s
        """,
        (organization_id, journey_id),
    )
    return DraftRow(*rows[0]) if rows else None


async def upsert_draft(tx: Tx, organization_id: UUID, journey_id: UUID, draft: DraftRow) -> None:
    """The caller has locked the journey's row."""
    await tx.execute(
        """
        INSERT INTO journey_drafts (organization_id, journey_id, based_on, revision, definition, changed_at, changed_by)
        VALUES (%s, %s, %s, %s, %s::json, %s, %s)
        ON CONFLICT (organization_id, journey_id)
        DO UPDATE SET based_on = EXCLUDED.based_on, revision = EXCLUDED.revision, definition = EXCLUDED.definition,
                      changed_at = EXCLUDED.changed_at, changed_by = EXCLUDED.changed_by
        """,
        (
            organization_id,
            journey_id,
            draft.based_on,
            draft.revision,
            draft.definition,
            draft.changed_at,
            draft.changed_by,
        ),
    )


async def delete_draft(tx: Tx, organization_id: UUID, journey_id: UUID) -> int:
    return await tx.execute(
        "DELETE FROM journey_drafts WHERE organization_id = %s AND journey_id = %s", (organization_id, journey_id)
    )
