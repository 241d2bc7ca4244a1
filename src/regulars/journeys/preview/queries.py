"""The SQL of samples: a bounded look at the newest facts."""

from uuid import UUID

from regulars.kit.db import Tx

LOOKED_AT_MAX = 500


async def list_last_buyers(tx: Tx, organization_id: UUID, kind: str, *, limit: int) -> list[tuple[UUID, UUID]]:
    """Customers and their sales among the last that were recorded."""
    rows = await tx.fetch(
        """
        SELECT lately.profile_id, lately.id FROM (
            SELECT id, profile_id, type FROM sales_events
            WHERE organization_id = %s
            ORDER BY id DESC
            LIMIT %s
        ) AS lately
        WHERE lately.profile_id IS NOT NULL AND lately.type = %s
        ORDER BY lately.id DESC
        LIMIT %s
        """,
        (organization_id, LOOKED_AT_MAX, kind, limit),
    )
    return [(row[0], row[1]) for row in rows]


async def list_last_subscribers(tx: Tx, organization_id: UUID, *, limit: int) -> list[UUID]:
    rows = await tx.fetch(
        """
        SELECT lately.profile_id FROM (
            SELECT profile_id, status, updated_at FROM subscriptions
            WHERE organization_id = %s
            ORDER BY updated_at DESC, id DESC
            LIMIT %s
        ) AS lately
        WHERE lately.profile_id IS NOT NULL AND lately.status = 'SUBSCRIBED'
        ORDER BY lately.updated_at DESC
        LIMIT %s
        """,
        (organization_id, LOOKED_AT_MAX, limit),
    )
    return [row[0] for row in rows]


async def find_last_sale(tx: Tx, organization_id: UUID, profile_id: UUID, kind: str) -> UUID | None:
    rows = await tx.fetch(
        """
        SELECT id FROM sales_events
        WHERE organization_id = %s AND profile_id = %s AND type = %s
        ORDER BY id DESC
        LIMIT 1
        """,
        (organization_id, profile_id, kind),
    )
    return rows[0][0] if rows else None
