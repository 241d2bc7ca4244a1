"""The queue of runs: whatever is due goes on, in bites."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from regulars.journeys.interests import end_need
from regulars.journeys.program import sets_attributes
from regulars.journeys.runs import queries
from regulars.journeys.runs.advance import advance
from regulars.journeys.runs.definitions import load_definitions
from regulars.journeys.runs.model import Noted, RunRow
from regulars.journeys.trace import keep as trace
from regulars.kit.db import Database, Tx
from regulars.profiles.find import find_held_up
from regulars.work.queue import Due, RowQueue, Schedule, take_free


class RunQueue(RowQueue[RunRow]):
    name = "journey_runs"
    due = Due(table="journey_runs")
    schedule = Schedule(waits_s=(5, 30, 120, 600, 3600))
    bite_rows = 100

    async def take_turn(self, database: Database, organization_id: UUID) -> bool:
        is_more = await super().take_turn(database, organization_id)
        if not is_more:
            await end_need(database, organization_id)
        return is_more

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[RunRow]:
        async def find(after: RunRow | None, many: int) -> Sequence[RunRow]:
            return await queries.take_due_runs(tx, organization_id, after=after, limit=many)

        async def lock(found: Sequence[RunRow]) -> Sequence[RunRow]:
            return await _without_held_up(tx, organization_id, found)

        return await take_free(find, lock, limit=limit)

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[RunRow]) -> None:
        await advance(tx, organization_id, rows)

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: RunRow, *, attempts: int, due_at: datetime | None
    ) -> None:
        """A run that keeps failing is parked with its reason, and a person can resume it."""
        failed = row._replace(state="active" if due_at is not None else "parked", attempts=attempts, due_at=due_at)
        await queries.save_runs(tx, organization_id, [failed])

    async def note_failure(self, tx: Tx, organization_id: UUID, row: RunRow, error: Exception) -> None:
        # The trace has the kind of error for developers; its words may hold a customer's own, and are in the log.
        why = type(error).__name__
        await queries.set_reason(tx, organization_id, row.id, reason="A step failed; the log of the worker says why.")
        detail = {"attempts": row.attempts + 1, "error": why}
        await trace.insert_trace(tx, organization_id, [Noted(row.id, row.step, "failed", detail)])


async def _without_held_up(tx: Tx, organization_id: UUID, rows: Sequence[RunRow]) -> Sequence[RunRow]:
    """Those that can go on now. A run that may set an attribute needs its customer's profile; everybody else locks that
    first and runs after it, so this takes what is free and waits for nobody. The others are due again in a moment."""
    definitions = await load_definitions(tx, organization_id, {(row.journey_id, row.version) for row in rows})
    changing = {row.profile_id for row in rows if sets_attributes(definitions[row.journey_id, row.version])}
    held_up = await find_held_up(tx, organization_id, changing) if changing else set()
    return [row for row in rows if row.profile_id not in held_up]
