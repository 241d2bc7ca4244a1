"""The read-only SQL of journey backtests: pages of sales and subscriptions in a period, and the sales of customers."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from regulars.journeys.model import SaleTimes
from regulars.journeys.snapshot import CLOCK_DIFFERENCE_MAX
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at


async def forbid_writes(tx: Tx) -> None:
    """Make PostgreSQL reject every later write of this transaction."""
    await tx.execute("SET TRANSACTION READ ONLY")


def first_sale_id(since: datetime) -> UUID:
    """The smallest id that a sale recorded since this time can have."""
    return first_id_at(since - CLOCK_DIFFERENCE_MAX)


async def find_recording_time_at(
    tx: Tx, organization_id: UUID, sale_type: str, *, since: datetime, offset: int
) -> datetime | None:
    """When the sale after the first `offset` sales was recorded; None if there are no more sales."""
    return await tx.fetch_value(
        """
        SELECT created_at FROM sales_events
        WHERE organization_id = %(organization_id)s AND id > %(after)s AND type = %(sale_type)s
          AND profile_id IS NOT NULL AND created_at >= %(since)s
        ORDER BY id
        LIMIT 1 OFFSET %(offset)s
        """,
        {
            "organization_id": organization_id,
            "after": first_sale_id(since),
            "sale_type": sale_type,
            "since": since,
            "offset": offset,
        },
    )


async def list_sales(
    tx: Tx, organization_id: UUID, sale_type: str, *, since: datetime, after: UUID, limit: int
) -> list[tuple[UUID, UUID]]:
    """Sales and their customers, oldest first."""
    return await tx.fetch(
        """
        SELECT id, profile_id FROM sales_events
        WHERE organization_id = %(organization_id)s AND id > %(after)s AND type = %(sale_type)s
          AND profile_id IS NOT NULL AND created_at >= %(since)s
        ORDER BY id
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "after": after, "sale_type": sale_type, "since": since, "limit": limit},
    )


async def list_changed_subscriptions(
    tx: Tx, organization_id: UUID, *, after: tuple[datetime, UUID], limit: int
) -> list[tuple[datetime, UUID, UUID | None]]:
    """A page of subscriptions that changed after a time, as (change time, id, customer). A consent changes its
    subscription, so the pages contain all numbers with a later consent."""
    return await tx.fetch(
        """
        SELECT updated_at, id, profile_id FROM subscriptions
        WHERE organization_id = %(organization_id)s AND (updated_at, id) > (%(changed_at)s, %(id)s)
        ORDER BY updated_at, id
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "changed_at": after[0], "id": after[1], "limit": limit},
    )


async def find_past_sales(
    tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID], *, since: datetime, limit: int
) -> list[tuple[UUID, SaleTimes]]:
    """The newest sales of each customer that happened or were recorded since a time."""
    rows = await tx.fetch(
        """
        SELECT it.id, sale.id, sale.type, sale.occurred_at, sale.created_at
        FROM unnest(%(profile_ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT id, type, occurred_at, created_at FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id = it.id
              AND (occurred_at >= %(since)s OR created_at >= %(since)s)
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS sale
        """,
        {"organization_id": organization_id, "profile_ids": list(profile_ids), "since": since, "limit": limit},
    )
    return [(row[0], SaleTimes(*row[1:])) for row in rows]
