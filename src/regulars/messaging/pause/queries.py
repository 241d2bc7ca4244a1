"""The SQL of paused texts."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx


class PausedText(NamedTuple):
    id: UUID
    origin_id: UUID
    step: str
    expires_at: datetime


async def pause_texts(tx: Tx, organization_id: UUID, *, origin_kind: str, origin_ids: Collection[UUID]) -> None:
    """One that is being sent keeps the time by which its sender must have ended; if it comes back it is paused."""
    await tx.execute(
        """
        UPDATE texts SET is_paused = true, due_at = CASE WHEN state = 'sending' THEN due_at END
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND origin_kind = %(origin_kind)s
              AND origin_id = ANY (%(origin_ids)s::uuid[]) AND state IN ('queued', 'sending')
            ORDER BY id
            FOR UPDATE
        ))
        """,
        {"organization_id": organization_id, "origin_kind": origin_kind, "origin_ids": list(origin_ids)},
    )


async def resume_texts(
    tx: Tx, organization_id: UUID, *, origin_kind: str, origin_ids: Collection[UUID]
) -> list[PausedText]:
    """Make those that wait due now, and give them, locked."""
    rows = await tx.fetch(
        """
        UPDATE texts SET is_paused = false, due_at = CASE WHEN state = 'queued' THEN %(now)s ELSE due_at END
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND origin_kind = %(origin_kind)s
              AND origin_id = ANY (%(origin_ids)s::uuid[]) AND is_paused
            ORDER BY id
            FOR UPDATE
        ))
        RETURNING id, origin_id, step, expires_at, state
        """,
        {
            "organization_id": organization_id,
            "origin_kind": origin_kind,
            "origin_ids": list(origin_ids),
            "now": tx.now,
        },
    )
    return [PausedText(*row[:4]) for row in rows if row[4] == "queued"]
