"""The rows of the tables of journeys, and the columns of sales and profiles that journeys read."""

from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

# The type of a sale, by the trigger that it starts or the exit that it causes.
SALE_TYPES: Final = {"purchase": "PURCHASE", "return": "RETURN"}


class JourneyRow(NamedTuple):
    id: UUID
    name: str
    state: str
    version: int
    live_version: int | None
    paused_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ActivationRow(NamedTuple):
    """A period in which a version of a journey was live, with its definition; `until` is None while it is live."""

    journey_id: UUID
    version: int
    since: datetime
    until: datetime | None
    definition: str


class RunRow(NamedTuple):
    """`fact_kind` and `fact_id` identify the sale or consent (the fact) that started the run."""

    id: UUID
    journey_id: UUID
    version: int
    fact_kind: str
    fact_id: str
    profile_id: UUID
    sale_id: UUID | None
    state: str
    step: str | None
    # What the run waits for at its step: time, purchase, text, or fault (until a condition can be evaluated).
    waits_for: str | None
    waiting_since: datetime | None
    due_at: datetime | None
    # Failed attempts to advance the run.
    attempts: int
    outcome: str | None
    reason: str | None
    entered_at: datetime
    ended_at: datetime | None
    # When the sale or consent that started the run was recorded; None in runs of earlier releases.
    fact_at: datetime | None = None
    # While the run waits for a purchase: the customer's latest sales when the wait began.
    seen_sales: list[UUID] | None = None

    @property
    def triggered_at(self) -> datetime:
        """When the sale or consent that started the run was recorded. A sale recorded later may end the run."""
        return self.fact_at or self.entered_at


class NewJourneyRun(NamedTuple):
    id: UUID
    journey_id: UUID
    version: int
    fact_kind: str
    fact_id: str
    profile_id: UUID
    sale_id: UUID | None
    step: str | None
    fact_at: datetime


class TraceEntry(NamedTuple):
    """An entry of a run's trace, to be written."""

    run_id: UUID
    step: str | None
    event: str
    detail: dict[str, Any]


class TraceRow(NamedTuple):
    """A stored entry of a run's trace; `sequence` is its number in the trace."""

    sequence: int
    at: datetime
    step: str | None
    event: str
    detail: Any


class VersionRow(NamedTuple):
    version: int
    created_at: datetime
    created_by: str | None


class LivePeriod(NamedTuple):
    """A period in which a version was live; `until` is None while it is live."""

    version: int
    since: datetime
    until: datetime | None


class SaleRow(NamedTuple):
    id: UUID
    type: str
    profile_id: UUID | None
    store_id: UUID
    store_external_id: str
    store_name: str | None
    city: str | None
    country: str | None
    amount_cents: int
    currency: str
    occurred_at: datetime
    created_at: datetime
    line_items: Any


class SaleTimes(NamedTuple):
    """The type and times of a sale, which decide whether it ends or wakes a run."""

    id: UUID
    type: str
    occurred_at: datetime
    # When the sale was recorded.
    created_at: datetime


RecordedSale = SaleRow | SaleTimes


class PersonRow(NamedTuple):
    """A customer's profile; `is_subscribed` means that at least one of the customer's numbers has consent."""

    id: UUID
    first_name: str | None
    last_name: str | None
    attributes: dict[str, str]
    is_subscribed: bool
