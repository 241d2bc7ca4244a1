"""The queries for the customer data that conditions need. Each query uses an index that starts with the customer id.

A text has an origin, such as a journey run or a campaign; `claimed_at` is when a worker took the text to send it.
`OFFSET 0` keeps the planner from merging the lookup of one customer into the outer query.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from regulars.kit.db import Tx


async def find_sales(
    tx: Tx,
    organization_id: UUID,
    ids: Collection[UUID],
    *,
    since: datetime | None,
    with_lines: bool,
    limit: int | None = None,
) -> list[tuple[Any, ...]]:
    """The sales of customers since a time, the earliest first; of each customer only the `limit` sales that were
    recorded last. A row has the customer, the fields of a `CustomerSale` without its day, and the lines as JSON."""
    return await tx.fetch(
        """
        SELECT it.id, sale.id, sale.external_id, sale.type, sale.occurred_at, sale.created_at, sale.store_id,
               sale.currency, sale.total_amount_cents, sale.line_items
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT id, external_id, type, occurred_at, created_at, store_id, currency, total_amount_cents,
                   CASE WHEN %(with_lines)s THEN line_items END AS line_items
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id = it.id
              AND (%(since)s::timestamptz IS NULL OR occurred_at >= %(since)s)
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS sale
        ORDER BY sale.occurred_at, sale.id
        """,
        {
            "organization_id": organization_id,
            "ids": list(ids),
            "since": since,
            "with_lines": with_lines,
            "limit": limit,
        },
    )


async def find_texts(
    tx: Tx, organization_id: UUID, ids: Collection[UUID], *, since: datetime
) -> list[tuple[UUID, datetime, UUID | None]]:
    """Customer, time and journey of texts that were sent or delivered; replies to STOP and HELP are not counted."""
    return await tx.fetch(
        """
        SELECT it.id, sent.at, sent.journey_id
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT COALESCE(texts.claimed_at, texts.created_at) AS at, journey_runs.journey_id
            FROM texts
            LEFT JOIN journey_runs ON journey_runs.organization_id = %(organization_id)s
                AND texts.origin_kind = 'journey' AND journey_runs.id = texts.origin_id
            WHERE texts.organization_id = %(organization_id)s AND texts.profile_id = it.id
              AND texts.state IN ('sent', 'delivered') AND texts.origin_kind NOT IN ('stop', 'help')
              AND COALESCE(texts.claimed_at, texts.created_at) >= %(since)s
            OFFSET 0
        ) AS sent
        ORDER BY sent.at
        """,
        {"organization_id": organization_id, "ids": list(ids), "since": since},
    )


async def find_received(
    tx: Tx, organization_id: UUID, ids: Collection[UUID], campaign_ids: Collection[UUID]
) -> list[tuple[UUID, UUID, datetime]]:
    """Customer, campaign and time of the texts of these campaigns that were sent, or whose outcome is unknown."""
    return await tx.fetch(
        """
        SELECT it.id, sent.origin_id, sent.at
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT origin_id, COALESCE(claimed_at, created_at) AS at
            FROM texts
            WHERE organization_id = %(organization_id)s AND profile_id = it.id AND origin_kind = 'campaign'
              AND origin_id = ANY (%(campaign_ids)s::uuid[]) AND state IN ('sent', 'delivered', 'unknown')
            OFFSET 0
        ) AS sent
        """,
        {"organization_id": organization_id, "ids": list(ids), "campaign_ids": list(campaign_ids)},
    )
