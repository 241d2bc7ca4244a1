"""What the pages on consent show."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec


class SubscriptionLine(NamedTuple):
    """A subscription in a list."""

    id: UUID
    phone_number: str | None
    status: str
    consent_source: str | None
    consented_at: datetime | None
    unsubscribed_at: datetime | None
    has_terms: bool
    profile_id: UUID | None
    profile_external_id: str | None
    first_name: str | None
    last_name: str | None


class StoreConsents(msgspec.Struct, frozen=True):
    """Numbers whose consent names a store, and how many of them consented in the last 30 days."""

    store_id: UUID
    subscribed: int
    opt_ins: int
