"""What a run is."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID


class RunRow(NamedTuple):
    id: UUID
    journey_id: UUID
    version: int
    fact_kind: str
    fact_id: str
    profile_id: UUID
    sale_id: UUID | None
    state: str
    step: str | None
    waits_for: str | None
    waiting_since: datetime | None
    due_at: datetime | None
    attempts: int
    outcome: str | None
    reason: str | None
    entered_at: datetime
    ended_at: datetime | None


class NewRun(NamedTuple):
    id: UUID
    journey_id: UUID
    version: int
    fact_kind: str
    fact_id: str
    profile_id: UUID
    sale_id: UUID | None
    step: str | None


class Noted(NamedTuple):
    """One line of a trace."""

    run_id: UUID
    step: str | None
    event: str
    detail: dict[str, Any]


class TraceRow(NamedTuple):
    sequence: int
    at: datetime
    step: str | None
    event: str
    detail: Any
