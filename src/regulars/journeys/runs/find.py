"""Read runs and their traces."""

from collections.abc import Sequence
from uuid import UUID

from regulars.journeys.browse import read as browse
from regulars.journeys.runs import queries
from regulars.journeys.runs.model import RunRow, TraceRow
from regulars.journeys.trace import keep as trace
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest


async def find_run(tx: Tx, organization_id: UUID, run_id: UUID) -> RunRow | None:
    return await queries.find_run(tx, organization_id, run_id)


async def list_runs(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    *,
    state: str | None = None,
    limit: int,
) -> Sequence[RunRow]:
    """The newest first."""
    return await browse.list_runs(tx, organization_id, journey_id, PageRequest(limit), state=state)


async def read_trace(tx: Tx, organization_id: UUID, run_id: UUID) -> Sequence[TraceRow]:
    """What the run saw and decided, in order."""
    return await trace.list_trace(tx, organization_id, run_id)


async def is_any_run_active(tx: Tx, organization_id: UUID, journey_id: UUID) -> bool:
    return await queries.is_any_active(tx, organization_id, journey_id)


async def is_any_run_open(tx: Tx, organization_id: UUID) -> bool:
    """On its way, or waiting for a person."""
    return await queries.is_any_open(tx, organization_id)
