"""What the pages on consent show."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.consent.queries import EntryRow


class EntryView(NamedTuple):
    """An entry of the ledger with what is left of its payload."""

    sequence: int
    kind: str
    outcome: str
    effective_at: datetime
    claimed_at: datetime | None
    received_at: datetime
    hash: bytes
    previous_hash: bytes
    payload: str | None


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
    created_at: datetime


def view_of(entry: EntryRow) -> EntryView:
    """An entry of the history as pages show it."""
    return EntryView(
        entry.sequence,
        entry.kind,
        entry.outcome,
        entry.effective_at,
        entry.claimed_at,
        entry.received_at,
        entry.hash,
        entry.previous_hash,
        entry.payload,
    )
