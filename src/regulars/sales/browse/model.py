"""What the pages on tickets show, and what their list is narrowed by."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class TicketLine(NamedTuple):
    """A ticket in a list."""

    id: UUID
    external_id: str
    type: str
    occurred_at: datetime
    created_at: datetime
    currency: str
    total_amount_cents: int
    store_external_id: str
    store_name: str | None
    profile_id: UUID | None
    profile_external_id: str | None
    first_name: str | None
    last_name: str | None


class Filters(NamedTuple):
    """What the list is narrowed by. The stretch is along the store, the customer or the time."""

    store_id: UUID | None = None
    profile_id: UUID | None = None
    occurred_from: datetime | None = None
    occurred_to: datetime | None = None
    type: str | None = None
    currency: str | None = None
    is_identified: bool | None = None

    @property
    def is_by_time(self) -> bool:
        """A store's or a customer's tickets are indexed in the order of their arrival, all others by their own time."""
        has_time = self.occurred_from is not None or self.occurred_to is not None
        return has_time or (self.store_id is None and self.profile_id is None)


class CustomerTicket(NamedTuple):
    """A ticket as a customer's history needs it."""

    profile_id: UUID
    id: UUID
    external_id: str
    type: str
    occurred_at: datetime
    currency: str
    total_amount_cents: int
    store_id: UUID
    lines: int
