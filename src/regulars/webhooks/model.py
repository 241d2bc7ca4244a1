"""What an endpoint, a message and a delivery are, and which events an endpoint takes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

from regulars.webhooks.delivery.schedule import Health

PROFILE_EVENTS: Final = ("profile.created", "profile.updated", "profile.deleted")
SUBSCRIPTION_EVENTS: Final = (
    "subscription.created",
    "subscription.resubscribed",
    "subscription.updated",
    "subscription.unsubscribed",
)
SALES_EVENTS: Final = ("sales_event.recorded",)
MESSAGE_EVENTS: Final = ("message.sent", "message.delivered", "message.failed", "message.received")
PING: Final = "webhook.ping"
FAMILIES: Final = {
    "profile.*": PROFILE_EVENTS,
    "subscription.*": SUBSCRIPTION_EVENTS,
    "sales_event.*": SALES_EVENTS,
    "message.*": MESSAGE_EVENTS,
}
EVENTS: Final = (*PROFILE_EVENTS, *SUBSCRIPTION_EVENTS, *SALES_EVENTS, *MESSAGE_EVENTS)
# What an endpoint takes that chose nothing: the two families of the specification. The others are chosen by name.
DEFAULT: Final = ("profile.*", "subscription.*")

ENDPOINTS_MAX: Final = 100
DESCRIPTION_CHARACTERS_MAX: Final = 255
OLD_SECRET_FOR: Final = timedelta(hours=24)
RETENTION: Final = timedelta(days=30)

State = Literal["enabled", "disabled"]
DisabledBy = Literal["person", "receiver", "failures"]
DeliveryState = Literal["pending", "delivered", "failed", "cancelled"]

WHY_DISABLED: Final = {
    "person": "It was disabled by a person.",
    "receiver": "The receiver answered 410 Gone.",
    "failures": "Nothing but failures for five days.",
}


class Endpoint(NamedTuple):
    id: UUID
    url: str
    description: str
    event_types: tuple[str, ...]
    state: State
    disabled_at: datetime | None
    disabled_by: DisabledBy | None
    created_at: datetime
    updated_at: datetime
    old_secret_until: datetime | None
    health: Health

    @property
    def events(self) -> frozenset[str]:
        return expand(self.event_types)

    @property
    def is_draft(self) -> bool:
        """It was disabled by nobody: a developer drafted it, and no admin has enabled it yet."""
        return self.state == "disabled" and self.disabled_by is None

    @property
    def note(self) -> str | None:
        """What a person should know about it."""
        if self.is_draft:
            return "It waits for the approval of an admin. Nothing is sent to it until then."
        if self.state == "enabled" or self.disabled_by is None:
            return None
        return f"{WHY_DISABLED[self.disabled_by]} What waits is held, and events of this time are not made for it."


class Message(NamedTuple):
    """An event as it is sent; `body` is None once the person it spoke of was erased."""

    id: UUID
    type: str
    body: str | None
    profile_id: UUID | None
    subscription_id: UUID | None
    of_erasure: bool
    created_at: datetime


class Delivery(NamedTuple):
    id: UUID
    endpoint_id: UUID
    message_id: UUID
    type: str
    state: DeliveryState
    attempts: int
    lapses: int
    due_at: datetime | None
    created_at: datetime
    attempted_at: datetime | None
    duration_ms: int | None
    answer_status: int | None
    is_replay: bool


class Attempt(NamedTuple):
    """One that failed."""

    number: int
    attempted_at: datetime
    duration_ms: int
    status: int | None
    error: str
    answer: str | None


class Replayable(NamedTuple):
    """A delivery whose message may be sent again, unless it was erased or arrived meanwhile."""

    id: UUID
    message_id: UUID
    created_at: datetime
    can_be_sent: bool


def expand(event_types: Sequence[str]) -> frozenset[str]:
    """The names of events that the types stand for."""
    return frozenset(name for kind in event_types for name in FAMILIES.get(kind, (kind,)))


def unknown_types(event_types: Sequence[str]) -> list[str]:
    return [kind for kind in event_types if kind not in FAMILIES and kind not in EVENTS]
