"""Ends, pauses and continues all runs of a journey; resumes one parked run, which failed at every attempt."""

from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

from regulars.journeys.errors import NotPossible, RunNotFound
from regulars.journeys.interests import start_recording_facts
from regulars.journeys.model import RunRow, TraceEntry
from regulars.journeys.runs import queries, trace
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts.holds import cancel_texts, pause_texts, resume_texts

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
    await cancel_texts(tx, organization_id, OriginKind.JOURNEY, [run.id for run in runs if run.waits_for == "text"])


async def end_all_runs(tx: Tx, organization_id: UUID, journey_id: UUID, *, outcome: str) -> None:
    while runs := await queries.lock_open_runs(tx, organization_id, journey_id, limit=_BATCH_ROWS):
        await end_runs(tx, organization_id, runs, outcome=outcome)


async def pause_all_runs(tx: Tx, organization_id: UUID, journey_id: UUID) -> None:
    """Pause the runs, then their texts. In this order no text is missed: a worker that is advancing a run requests its
    text before this transaction gets the lock on the run."""
    await queries.pause_runs(tx, organization_id, journey_id)
    async for step_by_run in _batch_waiting_runs(tx, organization_id, journey_id):
        await pause_texts(tx, organization_id, OriginKind.JOURNEY, step_by_run.keys())


async def release_all_runs(tx: Tx, organization_id: UUID, journey_id: UUID) -> None:
    """Continue paused runs, and the texts for which runs still wait."""
    if await queries.release_runs(tx, organization_id, journey_id):
        tx.queues_to_wake.add(("journey_runs", organization_id))
    async for step_by_run in _batch_waiting_runs(tx, organization_id, journey_id):
        await resume_texts(tx, organization_id, OriginKind.JOURNEY, step_by_run)


async def _batch_waiting_runs(tx: Tx, organization_id: UUID, journey_id: UUID) -> AsyncIterator[dict[UUID, str | None]]:
    """Batches of the runs that wait for a text: step by run id."""
    after = UUID(int=0)
    while batch := await queries.list_texted_runs(tx, organization_id, journey_id, after=after, limit=_BATCH_ROWS):
        yield dict(batch)
        after = batch[-1][0]


async def resume_run(tx: Tx, organization_id: UUID, run_id: UUID) -> None:
    run = await queries.lock_run(tx, organization_id, run_id)
    if run is None:
        raise RunNotFound("There is no run with this id.")
    if run.state != "parked":
        raise NotPossible(f"Only a parked run can be resumed; this one is {run.state}.")
    resumed = run._replace(state="active", attempts=0, due_at=tx.now, reason=None)
    await queries.save_runs(tx, organization_id, [resumed])
    await trace.insert_trace(tx, organization_id, [TraceEntry(run_id, run.step, "resumed", {})])
    await start_recording_facts(tx, organization_id)
    tx.queues_to_wake.add(("journey_runs", organization_id))
