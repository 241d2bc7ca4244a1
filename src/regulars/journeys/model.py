"""The rows of the tables of journeys, and the columns of sales and profiles that journeys read."""

from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID


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
    waits_for: str | None
    waiting_since: datetime | None
    due_at: datetime | None
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
    def since(self) -> datetime:
        """A sale recorded after this time may end the run."""
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


class RecordedSale(Protocol):
    """The columns that `SaleRow` and `RecordedRow` share."""

    @property
    def id(self) -> UUID: ...
    @property
    def type(self) -> str: ...
    @property
    def occurred_at(self) -> datetime: ...
    @property
    def created_at(self) -> datetime: ...


class RecordedRow(NamedTuple):
    """The columns of a sale that decide whether it ends or wakes a run."""

    id: UUID
    type: str
    occurred_at: datetime
    created_at: datetime


class PersonRow(NamedTuple):
    id: UUID
    first_name: str | None
    last_name: str | None
    attributes: dict[str, str]
    is_subscribed: bool
