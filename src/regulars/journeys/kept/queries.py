"""The SQL of runs that go."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx


class Deleted(NamedTuple):
    id: UUID
    journey_id: UUID
    version: int
    step: str | None
    state: str


async def delete_runs_of(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> list[Deleted]:
    """A person's runs with their traces, and their places in journeys."""
    # In the order of their ids, as everybody locks several runs.
    rows = await tx.fetch(
        """
        SELECT id, journey_id, version, step, state FROM journey_runs
        WHERE organization_id = %s AND profile_id = ANY (%s::uuid[])
        ORDER BY id
        FOR UPDATE
        """,
        (organization_id, list(profile_ids)),
    )
    run_ids = [row[0] for row in rows]
    await tx.execute(
        "DELETE FROM journey_runs WHERE organization_id = %s AND id = ANY (%s::uuid[])", (organization_id, run_ids)
    )
    await _delete_traces(tx, organization_id, run_ids)
    await tx.execute(
        "DELETE FROM journey_customers WHERE organization_id = %s AND profile_id = ANY (%s::uuid[])",
        (organization_id, list(profile_ids)),
    )
    return [Deleted(*row) for row in rows]


async def delete_old_runs(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    rows = await tx.fetch(
        """
        DELETE FROM journey_runs
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM journey_runs
            WHERE organization_id = %(organization_id)s AND ended_at < %(before)s
            LIMIT %(limit)s
        ))
        RETURNING id
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )
    await _delete_traces(tx, organization_id, [row[0] for row in rows])
    return len(rows)


async def _delete_traces(tx: Tx, organization_id: UUID, run_ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM journey_trace WHERE organization_id = %s AND run_id = ANY (%s::uuid[])",
        (organization_id, list(run_ids)),
    )
