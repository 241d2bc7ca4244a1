"""The SQL of what pages show of webhooks. Every look is a stretch of an index, whatever an organization has sent."""

from datetime import datetime
from uuid import UUID

from regulars.kit.db import Tx


async def list_posted(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, since: datetime, limit: int
) -> list[tuple[str, datetime, int, int, UUID | None]]:
    """Messages about a subscription with the number of their deliveries, those that arrived, and the first."""
    rows = await tx.fetch(
        """
        SELECT m.type, m.created_at, d.many, d.arrived, d.first_id
        FROM (
            SELECT id, type, created_at FROM webhook_messages
            WHERE organization_id = %(organization_id)s AND subscription_id = %(subscription_id)s
              AND created_at >= %(since)s
            ORDER BY id
            LIMIT %(limit)s
        ) AS m
        CROSS JOIN LATERAL (
            SELECT count(*) AS many, count(*) FILTER (WHERE state = 'delivered') AS arrived,
                   (array_agg(id ORDER BY id))[1] AS first_id
            FROM webhook_deliveries WHERE organization_id = %(organization_id)s AND message_id = m.id
        ) AS d
        ORDER BY m.id
        """,
        {"organization_id": organization_id, "subscription_id": subscription_id, "since": since, "limit": limit},
    )
    return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]
