"""Writes and reads the trace of journey runs, the list of what a run read and decided (`journey_trace`), and counts
their events by step (`journey_totals`)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from regulars.journeys.model import RunRow, TraceEntry, TraceRow
from regulars.kit.arrays import Bigints, Ids, Jsons, Labels
from regulars.kit.columns import Columns
from regulars.kit.db import Tx

_ENTRIES: Final = Columns(run_id=Ids, step=Labels, event=Labels, detail=(Jsons, msgspec.json.encode))
_INSERT_TRACE: Final = _ENTRIES.write(
    """
    INSERT INTO journey_trace (organization_id, sequence, at, {columns})
    SELECT %(organization_id)s,
           COALESCE((SELECT max(earlier.sequence) FROM journey_trace AS earlier
                     WHERE earlier.organization_id = %(organization_id)s AND earlier.run_id = it.run_id), 0)
           + row_number() OVER (PARTITION BY it.run_id ORDER BY it.number),
           %(now)s, {columns}
    FROM {arrays} WITH ORDINALITY AS it ({columns}, number)
    """
)


async def insert_trace(tx: Tx, organization_id: UUID, entries: Sequence[TraceEntry]) -> None:
    """Append entries to traces in the given order. The caller has locked the runs."""
    await tx.execute(_INSERT_TRACE, {"organization_id": organization_id, "now": tx.now, **_ENTRIES.of(entries)})


async def list_trace(tx: Tx, organization_id: UUID, run_id: UUID) -> list[TraceRow]:
    return await tx.fetch_all(
        TraceRow,
        "SELECT {columns} FROM journey_trace WHERE organization_id = %s AND run_id = %s ORDER BY sequence",
        (organization_id, run_id),
    )


_TOTALS: Final = Columns(journey_id=Ids, version=Bigints, step=Labels, event=Labels, times=Bigints)
_ADD_TOTALS: Final = _TOTALS.write(
    """
    INSERT INTO journey_totals (organization_id, {columns})
    SELECT %(organization_id)s, it.* FROM {rows}
    ORDER BY it.journey_id, it.version, it.step, it.event
    ON CONFLICT (organization_id, journey_id, version, step, event)
    DO UPDATE SET times = journey_totals.times + EXCLUDED.times
    """
)


async def add_totals(tx: Tx, organization_id: UUID, counts: Mapping[tuple[UUID, int, str, str], int]) -> None:
    """Add counts by journey, version, step and event, sorted, so that all transactions lock rows in the same order."""
    if counts:
        rows = [(*key, count) for key, count in counts.items()]
        await tx.execute(_ADD_TOTALS, {"organization_id": organization_id, **_TOTALS.of_tuples(rows)})


async def count_events(tx: Tx, organization_id: UUID, events: Sequence[tuple[RunRow, str, str]]) -> None:
    """Count events, each given as run, step id and event name."""
    await add_totals(
        tx, organization_id, Counter((run.journey_id, run.version, step, event) for run, step, event in events)
    )
