"""What this room tells those above it."""

from typing import ClassVar
from uuid import UUID

import msgspec

from regulars.work.facts import Fact


class MessagesChanged(Fact, frozen=True):
    """A text reached a state in which whoever asked for it can go on, or a number was suppressed or released."""

    topic: ClassVar[str] = "messaging.messages_changed"
    on_interest: ClassVar[bool] = True

    kind: str
    text_id: UUID | None = None
    origin_kind: str | None = None
    origin_id: UUID | None = None
    step: str | None = None
    profile_id: UUID | None = None
    state: str | None = None
    reason: str | None = None
    number_hash: bytes | msgspec.UnsetType = msgspec.UNSET
