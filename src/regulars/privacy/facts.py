"""What this room tells itself for later. A fact waits in a table, so it says nothing that tells who somebody was."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class ProfileErased(Fact, frozen=True):
    """A profile is gone; whatever was being written about it at that moment has still to be looked for."""

    topic: ClassVar[str] = "privacy.profile_erased"

    profile_id: UUID
    # Rows from before this field was added have none.
    erased_at: datetime | None = None


class AnswersUnread(Fact, frozen=True):
    """An erasure had no time for a whole day of stored answers: those up to this moment have still to be read."""

    topic: ClassVar[str] = "privacy.answers_unread"

    until: datetime
    profile_ids: tuple[UUID, ...]
    subscription_ids: tuple[UUID, ...]
