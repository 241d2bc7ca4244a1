"""What the inbox of collisions shows."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class CollisionLine(NamedTuple):
    """A ticket that somebody tried to send again with other content."""

    sales_event_id: UUID
    external_id: str
    store_external_id: str
    store_name: str | None
    times_seen: int
    last_seen_at: datetime
    contents: int
    review: str | None
    note: str | None
    reviewed_by: str | None


class Review(NamedTuple):
    times_seen: int
    last_seen_at: datetime
    reviewed_at: datetime | None
    review: str | None
    note: str | None
    reviewed_by: str | None


class Attempt(NamedTuple):
    attempt: str
    first_seen_at: datetime
    last_seen_at: datetime
    times_seen: int
