"""A person lets a parked run try again."""

from uuid import UUID

from regulars.journeys.errors import NotPossible, RunNotFound
from regulars.journeys.interests import need_facts
from regulars.journeys.runs import queries
from regulars.journeys.runs.model import Noted
from regulars.journeys.trace import keep as trace
from regulars.kit.db import Tx


async def resume_run(tx: Tx, organization_id: UUID, run_id: UUID) -> None:
    run = await queries.lock_run(tx, organization_id, run_id)
    if run is None:
        raise RunNotFound("There is no run with this id.")
    if run.state != "parked":
        raise NotPossible(f"Only a parked run can be resumed; this one is {run.state}.")
    again = run._replace(state="active", attempts=0, due_at=tx.now, reason=None)
    await queries.save_runs(tx, organization_id, [again])
    await trace.insert_trace(tx, organization_id, [Noted(run_id, run.step, "resumed", {})])
    await need_facts(tx, organization_id)
    tx.touched.add(("journey_runs", organization_id))
