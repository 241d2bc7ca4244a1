"""The SQL of explanations."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx


async def list_last_sales(tx: Tx, organization_id: UUID, profile_id: UUID, kind: str, *, limit: int) -> list[UUID]:
    rows = await tx.fetch(
        """
        SELECT id FROM sales_events
        WHERE organization_id = %s AND profile_id = %s AND type = %s
        ORDER BY id DESC
        LIMIT %s
        """,
        (organization_id, profile_id, kind, limit),
    )
    return [row[0] for row in rows]


async def find_runs_by_facts(
    tx: Tx, organization_id: UUID, journey_id: UUID, fact_kind: str, fact_ids: Collection[str]
) -> dict[str, UUID]:
    rows = await tx.fetch(
        """
        SELECT fact_id, id FROM journey_runs
        WHERE organization_id = %s AND journey_id = %s AND fact_kind = %s AND fact_id = ANY (%s::text[])
        """,
        (organization_id, journey_id, fact_kind, list(fact_ids)),
    )
    return {row[0]: row[1] for row in rows}
