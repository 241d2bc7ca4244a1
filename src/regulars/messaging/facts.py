"""What this room tells those above it."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

import msgspec

from regulars.work.facts import Fact


class MessagesChanged(Fact, frozen=True):
    """A text changed its state (kind `text`), a number was suppressed or released (`suppression`), or a reply came
    (`reply`: then `text_id` is the reply's)."""

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
    # When it happened; facts of earlier releases do not say.
    at: datetime | None = None
