"""A journey as it is kept: its state, its versions, and when each was live."""

from datetime import datetime
from typing import NamedTuple
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
    journey_id: UUID
    version: int
    since: datetime
    until: datetime | None
    definition: str
