"""Ends all runs of a journey, makes those of a resumed journey due, and resumes one parked run, which failed at every
attempt."""

from typing import Final
from uuid import UUID

from regulars.journeys.interests import start_recording_facts
from regulars.journeys.model import RunRow, TraceEntry
from regulars.journeys.runs import queries, trace
from regulars.kit.db import Tx
from regulars.kit.refusals import NotFound, NotPossible
from regulars.texts.stops import SET_ASIDE_MAX, cancel_texts

_BATCH_ROWS: Final = 2_000


async def end_runs(tx: Tx, organization_id: UUID, runs: list[RunRow], *, outcome: str) -> None:
    """End runs; the caller has locked them."""
    if not runs:
        return
    ended = [run._replace(state="ended", waits_for=None, due_at=None, outcome=outcome, ended_at=tx.now) for run in runs]
    await queries.save_runs(tx, organization_id, ended)
    await trace.insert_trace(
        tx, organization_id, [TraceEntry(run.id, run.step, "ended", {"outcome": outcome}) for run in runs]
    )
    await trace.count_events(tx, organization_id, [(run, run.step or "", "ended") for run in runs])
    await cancel_texts(tx, organization_id, [run.id for run in runs if run.waits_for == "text"])


async def end_all_runs(tx: Tx, organization_id: UUID, journey_id: UUID, *, outcome: str) -> None:
    while runs := await queries.lock_open_runs(tx, organization_id, journey_id, limit=_BATCH_ROWS):
        await end_runs(tx, organization_id, runs, outcome=outcome)


async def release_runs(tx: Tx, organization_id: UUID, journey_id: UUID) -> int:
    """Make runs of a journey due that were set aside."""
    tx.queues_to_wake.add(("journey_runs", organization_id))
    return await tx.execute(
        """
        UPDATE journey_runs SET due_at = held_due_at, held_due_at = NULL
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM journey_runs
            WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s AND held_due_at IS NOT NULL
            ORDER BY id
            LIMIT %(limit)s
            FOR UPDATE
        ))
        """,
        {"organization_id": organization_id, "journey_id": journey_id, "limit": SET_ASIDE_MAX},
    )


async def resume_run(tx: Tx, organization_id: UUID, run_id: UUID) -> None:
    run = await queries.lock_run(tx, organization_id, run_id)
    if run is None:
        raise NotFound("There is no run with this id.")
    if run.state != "parked":
        raise NotPossible(f"Only a parked run can be resumed; this one is {run.state}.")
    resumed = run._replace(state="active", attempts=0, due_at=tx.now, reason=None)
    await queries.save_runs(tx, organization_id, [resumed])
    await trace.insert_trace(tx, organization_id, [TraceEntry(run_id, run.step, "resumed", {})])
    await start_recording_facts(tx, organization_id)
    tx.queues_to_wake.add(("journey_runs", organization_id))
