"""The SQL of traces and totals."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from regulars.journeys.runs.model import Noted, TraceRow
from regulars.kit.db import Tx


async def insert_trace(tx: Tx, organization_id: UUID, notes: Sequence[Noted]) -> None:
    """In the order given, behind what the runs already have; the runs are locked by whoever writes."""
    await tx.execute(
        """
        INSERT INTO journey_trace (organization_id, run_id, sequence, at, step, event, detail)
        SELECT %(organization_id)s, it.run_id,
               COALESCE((SELECT max(known.sequence) FROM journey_trace AS known
                         WHERE known.organization_id = %(organization_id)s AND known.run_id = it.run_id), 0)
               + row_number() OVER (PARTITION BY it.run_id ORDER BY it.place),
               %(now)s, it.step, it.event, it.detail::json
        FROM unnest(%(run_ids)s::uuid[], %(steps)s::text[], %(events)s::text[], %(details)s::text[])
             WITH ORDINALITY AS it (run_id, step, event, detail, place)
        """,
        {
            "organization_id": organization_id,
            "now": tx.now,
            "run_ids": [it.run_id for it in notes],
            "steps": [it.step for it in notes],
            "events": [it.event for it in notes],
            "details": [msgspec.json.encode(it.detail).decode() for it in notes],
        },
    )


async def list_trace(tx: Tx, organization_id: UUID, run_id: UUID) -> list[TraceRow]:
    rows = await tx.fetch(
        """
        SELECT sequence, at, step, event, detail FROM journey_trace
        WHERE organization_id = %s AND run_id = %s
        ORDER BY sequence
        """,
        (organization_id, run_id),
    )
    return [TraceRow(*row) for row in rows]


async def add_totals(tx: Tx, organization_id: UUID, counts: Sequence[tuple[UUID, int, str, str, int]]) -> None:
    """Journey, version, step, event and how often, in one order for all."""
    ordered = sorted(counts)
    await tx.execute(
        """
        INSERT INTO journey_totals (organization_id, journey_id, version, step, event, times)
        SELECT %(organization_id)s, it.journey_id, it.version, it.step, it.event, it.times
        FROM unnest(%(journey_ids)s::uuid[], %(versions)s::integer[], %(steps)s::text[], %(events)s::text[],
                    %(times)s::bigint[]) AS it (journey_id, version, step, event, times)
        ORDER BY it.journey_id, it.version, it.step, it.event
        ON CONFLICT (organization_id, journey_id, version, step, event)
        DO UPDATE SET times = journey_totals.times + EXCLUDED.times
        """,
        {
            "organization_id": organization_id,
            "journey_ids": [it[0] for it in ordered],
            "versions": [it[1] for it in ordered],
            "steps": [it[2] for it in ordered],
            "events": [it[3] for it in ordered],
            "times": [it[4] for it in ordered],
        },
    )
