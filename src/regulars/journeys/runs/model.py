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
    # When what brought the customer in was recorded; None in runs of the release before.
    fact_at: datetime | None = None
    # While it waits for a purchase: the latest sales that were there when the wait began.
    seen_sales: list[UUID] | None = None

    @property
    def since(self) -> datetime:
        """A sale recorded after this moment may end the run."""
        return self.fact_at or self.entered_at


class NewRun(NamedTuple):
    id: UUID
    journey_id: UUID
    version: int
    fact_kind: str
    fact_id: str
    profile_id: UUID
    sale_id: UUID | None
    step: str | None
    fact_at: datetime


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


class VersionRow(NamedTuple):
    version: int
    created_at: datetime
    created_by: str | None


class SpanRow(NamedTuple):
    """When a version was live."""

    version: int
    since: datetime
    until: datetime | None
