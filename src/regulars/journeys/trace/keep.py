"""Write down what runs saw and decided, and read it again."""

from collections.abc import Sequence
from uuid import UUID

from regulars.journeys.runs.model import Noted, TraceRow
from regulars.journeys.trace import queries
from regulars.kit.db import Tx


async def insert_trace(tx: Tx, organization_id: UUID, notes: Sequence[Noted]) -> None:
    """Behind what the runs already have; they are locked by whoever writes."""
    await queries.insert_trace(tx, organization_id, notes)


async def list_trace(tx: Tx, organization_id: UUID, run_id: UUID) -> list[TraceRow]:
    return await queries.list_trace(tx, organization_id, run_id)


async def add_totals(tx: Tx, organization_id: UUID, counts: Sequence[tuple[UUID, int, str, str, int]]) -> None:
    """Journey, version, step, event and how often."""
    await queries.add_totals(tx, organization_id, counts)
