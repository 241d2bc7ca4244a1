"""The SQL of backtests: facts in pages, and what is known of their customers. Nothing is written."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.journeys.model import RecordedRow
from regulars.kit.db import Tx

# An id has the time of the process that made it, a ticket that of the database: so far apart they never are.
_CLOCKS_APART_MAX: Final = timedelta(hours=1)
_RANDOM_BITS: Final = 80


async def forbid_writes(tx: Tx) -> None:
    """From here on the database itself refuses to change anything in this transaction."""
    await tx.execute("SET TRANSACTION READ ONLY")


def first_id_since(moment: datetime) -> UUID:
    """An id before all that were made from about that moment on: ids begin with their time."""
    milliseconds = int((moment - _CLOCKS_APART_MAX).timestamp() * 1000)
    return UUID(int=milliseconds << _RANDOM_BITS)


async def find_first_sale_beyond(
    tx: Tx, organization_id: UUID, kind: str, *, since: datetime, skipped: int
) -> datetime | None:
    """When the first sale was recorded that comes after so many others."""
    rows = await tx.fetch(
        """
        SELECT created_at FROM sales_events
        WHERE organization_id = %(organization_id)s AND id > %(after)s AND type = %(kind)s
          AND profile_id IS NOT NULL AND created_at >= %(since)s
        ORDER BY id
        LIMIT 1 OFFSET %(skipped)s
        """,
        {
            "organization_id": organization_id,
            "after": first_id_since(since),
            "kind": kind,
            "since": since,
            "skipped": skipped,
        },
    )
    return rows[0][0] if rows else None


async def list_sales(
    tx: Tx, organization_id: UUID, kind: str, *, since: datetime, after: UUID, limit: int
) -> list[tuple[UUID, UUID]]:
    """Sales of customers with whose they are, the oldest first."""
    rows = await tx.fetch(
        """
        SELECT id, profile_id FROM sales_events
        WHERE organization_id = %(organization_id)s AND id > %(after)s AND type = %(kind)s
          AND profile_id IS NOT NULL AND created_at >= %(since)s
        ORDER BY id
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "after": after, "kind": kind, "since": since, "limit": limit},
    )
    return [(row[0], row[1]) for row in rows]


async def list_changed_subscriptions(
    tx: Tx, organization_id: UUID, *, after: tuple[datetime, UUID], limit: int
) -> list[tuple[datetime, UUID, UUID | None]]:
    """Every number with a consent since a moment is among those that changed since."""
    rows = await tx.fetch(
        """
        SELECT updated_at, id, profile_id FROM subscriptions
        WHERE organization_id = %(organization_id)s AND (updated_at, id) > (%(moment)s, %(id)s)
        ORDER BY updated_at, id
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "moment": after[0], "id": after[1], "limit": limit},
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def find_past_sales(
    tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID], *, since: datetime, limit: int
) -> list[tuple[UUID, RecordedRow]]:
    """The newest sales of each customer that happened or were recorded since a moment."""
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
    return [(row[0], RecordedRow(*row[1:])) for row in rows]
