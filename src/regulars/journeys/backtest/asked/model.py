"""A backtest that was asked for."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID


class AskedRow(NamedTuple):
    journey_id: UUID
    # A version, or the draft at a revision.
    version: int | None
    revision: int | None
    definition: str
    days: int
    asked_at: datetime
    asked_by: str
    facts: int
    report: Any
    failure: str | None
    ended_at: datetime | None
    attempts: int
