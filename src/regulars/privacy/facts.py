"""Facts that `privacy` publishes to its own listeners. They are stored, so they do not identify a person."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class ProfileErased(Fact, frozen=True):
    """A profile was erased; rows that were being written about it at that moment still have to be found."""

    topic: ClassVar[str] = "privacy.profile_erased"

    profile_id: UUID
    # Rows from before this field was added have none.
    erased_at: datetime | None = None


class StoredResponsesRemain(Fact, frozen=True):
    """An erasure did not search all HTTP responses that are stored for idempotency: those up to `until` remain."""

    topic: ClassVar[str] = "privacy.answers_unread"

    until: datetime
    profile_ids: tuple[UUID, ...]
    subscription_ids: tuple[UUID, ...]
