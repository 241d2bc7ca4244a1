"""A sale and a customer as runs see them."""

from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID


class SaleRow(NamedTuple):
    id: UUID
    type: str
    profile_id: UUID | None
    store_id: UUID
    store_external_id: str
    store_name: str | None
    country: str | None
    amount_cents: int
    currency: str
    occurred_at: datetime
    created_at: datetime
    line_items: Any


class RecordedSale(Protocol):
    """What every row of a sale has."""

    @property
    def id(self) -> UUID: ...
    @property
    def type(self) -> str: ...
    @property
    def occurred_at(self) -> datetime: ...
    @property
    def created_at(self) -> datetime: ...


class RecordedRow(NamedTuple):
    """As much of a sale as a run needs to end or to go on by it."""

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
