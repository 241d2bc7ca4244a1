"""The SQL of stopped origins: campaigns that are paused or cancelled, so that none of their texts is sent."""

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx


class QueuedText(NamedTuple):
    id: UUID
    step: str


async def upsert_stop(tx: Tx, organization_id: UUID, origin_id: UUID, *, reason: str | None) -> None:
    """Stop an origin: with a reason it is cancelled, otherwise paused. A pause after a cancellation changes nothing."""
    await tx.execute(
        """
        INSERT INTO stopped_origins (organization_id, origin_id, reason, stopped_at)
        VALUES (%(organization_id)s, %(origin_id)s, %(reason)s, %(now)s)
        ON CONFLICT (organization_id, origin_id) DO UPDATE
        SET reason = COALESCE(stopped_origins.reason, EXCLUDED.reason)
        """,
        {"organization_id": organization_id, "origin_id": origin_id, "reason": reason, "now": tx.now},
    )


async def delete_stop(tx: Tx, organization_id: UUID, origin_id: UUID) -> None:
    """Let the texts of a paused origin be sent again. A cancelled origin remains stopped."""
    await tx.execute(
        "DELETE FROM stopped_origins WHERE organization_id = %s AND origin_id = %s AND reason IS NULL",
        (organization_id, origin_id),
    )


async def find_stops(tx: Tx, organization_id: UUID, origin_ids: Collection[UUID]) -> dict[UUID, str | None]:
    rows = await tx.fetch(
        "SELECT origin_id, reason FROM stopped_origins WHERE organization_id = %s AND origin_id = ANY (%s::uuid[])",
        (organization_id, list(origin_ids)),
    )
    return dict(rows)


async def lock_queued(tx: Tx, organization_id: UUID, origin_id: UUID, *, priority: int) -> list[QueuedText]:
    """Lock the queued texts of an origin in the order of their ids, like every transaction that locks several texts.

    OFFSET 0 and ORDER BY make the planner use the index of waiting texts, because the index by origin also contains all
    texts that were ever sent.
    """
    return await tx.fetch_all(
        QueuedText,
        """
        SELECT {columns} FROM texts
        WHERE organization_id = %(organization_id)s AND state = 'queued' AND id = ANY (ARRAY(
            SELECT waiting.id FROM (
                SELECT id, origin_id FROM texts
                WHERE organization_id = %(organization_id)s AND priority = %(priority)s AND due_at IS NOT NULL
                ORDER BY due_at, id
                OFFSET 0
            ) AS waiting
            WHERE waiting.origin_id = %(origin_id)s
        ))
        ORDER BY id
        FOR UPDATE
        """,
        {"organization_id": organization_id, "priority": priority, "origin_id": origin_id},
    )
