"""What a reply is."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class ReplyRow(NamedTuple):
    id: UUID
    provider: str
    provider_id: str
    number_hash: bytes
    phone_number: str
    profile_id: UUID | None
    body: str
    meaning: str
    decided: str | None
    decided_by: str | None
    decided_at: datetime | None
    due_at: datetime | None
    received_at: datetime

    @property
    def attempts(self) -> int:
        """A decision that is overdue is taken once, whatever happened before."""
        return 0
