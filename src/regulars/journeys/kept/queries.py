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
            FOR UPDATE SKIP LOCKED
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


async def list_versions_with(tx: Tx, organization_id: UUID, quoted: Sequence[str]) -> list[tuple[UUID, int, str]]:
    """Journey, version and definition of every version whose text holds one of these."""
    rows = await tx.fetch(
        """
        SELECT journey_id, version, definition::text FROM journey_versions
        WHERE organization_id = %(organization_id)s
          AND EXISTS (SELECT 1 FROM unnest(%(quoted)s::text[]) AS it (value)
                      WHERE position(it.value IN definition::text) > 0)
        ORDER BY journey_id, version
        """,
        {"organization_id": organization_id, "quoted": list(quoted)},
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def list_drafts_with(tx: Tx, organization_id: UUID, quoted: Sequence[str]) -> list[tuple[UUID, str]]:
    rows = await tx.fetch(
        """
        SELECT journey_id, definition::text FROM journey_drafts
        WHERE organization_id = %(organization_id)s
          AND EXISTS (SELECT 1 FROM unnest(%(quoted)s::text[]) AS it (value)
                      WHERE position(it.value IN definition::text) > 0)
        ORDER BY journey_id
        FOR UPDATE
        """,
        {"organization_id": organization_id, "quoted": list(quoted)},
    )
    return [(row[0], row[1]) for row in rows]


async def rewrite_version(tx: Tx, organization_id: UUID, journey_id: UUID, *, version: int, definition: str) -> None:
    """For an erasure alone: versions do not change otherwise."""
    await tx.execute(
        """
        UPDATE journey_versions SET definition = %s::json
        WHERE organization_id = %s AND journey_id = %s AND version = %s
        """,
        (definition, organization_id, journey_id, version),
    )


async def rewrite_draft(tx: Tx, organization_id: UUID, journey_id: UUID, *, definition: str) -> None:
    """Increments the revision, so that a user who edits the previous one gets a conflict."""
    await tx.execute(
        """
        UPDATE journey_drafts SET definition = %s::json, revision = revision + 1
        WHERE organization_id = %s AND journey_id = %s
        """,
        (definition, organization_id, journey_id),
    )


async def delete_backtests_with(tx: Tx, organization_id: UUID, quoted: Sequence[str]) -> None:
    """A backtest can be asked for again."""
    await tx.execute(
        """
        DELETE FROM journey_backtests
        WHERE organization_id = %(organization_id)s
          AND EXISTS (SELECT 1 FROM unnest(%(quoted)s::text[]) AS it (value)
                      WHERE position(it.value IN definition::text) > 0)
        """,
        {"organization_id": organization_id, "quoted": list(quoted)},
    )
