"""The SQL of figures: everything is read from totals, and what needs a person from indexes of their own."""

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx


class Total(NamedTuple):
    journey_id: UUID
    version: int
    step: str
    event: str
    times: int


async def list_totals(tx: Tx, organization_id: UUID, journey_ids: Collection[UUID]) -> list[Total]:
    rows = await tx.fetch(
        """
        SELECT journey_id, version, step, event, times FROM journey_totals
        WHERE organization_id = %s AND journey_id = ANY (%s::uuid[])
        """,
        (organization_id, list(journey_ids)),
    )
    return [Total(*row) for row in rows]


async def count_at_fault(tx: Tx, organization_id: UUID, *, most: int) -> list[tuple[UUID, int]]:
    """Runs that wait at a branch that cannot be judged, by journey; counting stops at so many."""
    rows = await tx.fetch(
        """
        SELECT capped.journey_id, count(*) FROM (
            SELECT journey_id FROM journey_runs
            WHERE organization_id = %s AND waits_for = 'fault'
            LIMIT %s
        ) AS capped
        GROUP BY capped.journey_id
        """,
        (organization_id, most),
    )
    return [(row[0], row[1]) for row in rows]


async def count_parked(tx: Tx, organization_id: UUID, *, most: int) -> list[tuple[UUID, int]]:
    """Runs that wait for a person, by journey; counting stops at so many."""
    rows = await tx.fetch(
        """
        SELECT capped.journey_id, count(*) FROM (
            SELECT journey_id FROM journey_runs
            WHERE organization_id = %s AND state = 'parked'
            LIMIT %s
        ) AS capped
        GROUP BY capped.journey_id
        """,
        (organization_id, most),
    )
    return [(row[0], row[1]) for row in rows]
