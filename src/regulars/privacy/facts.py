"""Facts (stored events) with which an erasure leaves work to the worker. They have ids only, no names or phone
numbers."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class ProfileErased(Fact, frozen=True):
    """A profile was erased; the worker still has to search rows that were being written during the erasure."""

    topic: ClassVar[str] = "privacy.profile_erased"

    profile_id: UUID
    # None in facts that were stored before this field was added.
    erased_at: datetime | None = None


class StoredResponsesRemain(Fact, frozen=True):
    """An erasure has not searched all HTTP responses that are stored for retries: those up to `until` remain."""

    topic: ClassVar[str] = "privacy.answers_unread"

    until: datetime
    profile_ids: tuple[UUID, ...]
    subscription_ids: tuple[UUID, ...]
