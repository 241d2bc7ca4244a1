"""The types of webhook events, and the data of endpoints, of messages (events as they are sent), and of deliveries."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

from regulars.webhooks.delivery.schedule import DISABLED_AFTER, Health

PROFILE_EVENTS: Final = ("profile.created", "profile.updated", "profile.deleted")
SUBSCRIPTION_EVENTS: Final = (
    "subscription.created",
    "subscription.resubscribed",
    "subscription.updated",
    "subscription.unsubscribed",
)
SALES_EVENTS: Final = ("sales_event.recorded",)
# Events of texts; elsewhere here, a message is an event as it is sent to an endpoint.
MESSAGE_EVENTS: Final = ("message.sent", "message.delivered", "message.failed", "message.received")
PING: Final = "webhook.ping"
# Names that stand for several events.
FAMILIES: Final = {
    "profile.*": PROFILE_EVENTS,
    "subscription.*": SUBSCRIPTION_EVENTS,
    "sales_event.*": SALES_EVENTS,
    "message.*": MESSAGE_EVENTS,
}
EVENT_TYPES: Final = (*PROFILE_EVENTS, *SUBSCRIPTION_EVENTS, *SALES_EVENTS, *MESSAGE_EVENTS)
# The events of an endpoint that chooses none, as the API specification demands.
DEFAULT_EVENT_TYPES: Final = ("profile.*", "subscription.*")
ENDPOINTS_MAX: Final = 100
DESCRIPTION_CHARACTERS_MAX: Final = 255
# How long the previous secret signs too after a rotation.
OLD_SECRET_FOR: Final = timedelta(hours=24)
# How long messages and their deliveries are stored.
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
        return expand_types(self.event_types)

    @property
    def is_draft(self) -> bool:
        """Whether a developer created the endpoint and no admin has enabled it yet; others have a `disabled_by`."""
        return self.state == "disabled" and self.disabled_by is None

    @property
    def note(self) -> str | None:
        """A sentence for users that says why nothing is sent to the endpoint."""
        if self.is_draft:
            return "It waits for the approval of an admin. Nothing is sent to it until then."
        if self.state == "enabled" or self.disabled_by is None:
            return None
        return f"{WHY_DISABLED[self.disabled_by]} Waiting deliveries are on hold; it gets no events while disabled."


class Message(NamedTuple):
    """An event as it is sent. `body` is None once the customer was erased, except in the report of that erasure."""

    id: UUID
    type: str
    body: str | None
    profile_id: UUID | None
    subscription_id: UUID | None
    of_erasure: bool
    created_at: datetime


class Delivery(NamedTuple):
    """The delivery of a message to one endpoint; `lapses` counts the workers that claimed it and did not finish."""

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


class FailedAttempt(NamedTuple):
    number: int
    attempted_at: datetime
    duration_ms: int
    status: int | None
    error: str
    answer: str | None


class DeliveryDetails(NamedTuple):
    """A delivery, the body of its message and its failed attempts; `body` is None once the customer was erased."""

    delivery: Delivery
    body: str | None
    attempts: list[FailedAttempt]


class PostedEvent(NamedTuple):
    """An event and how many endpoints it is sent to; `delivery_id` is the first of its deliveries."""

    type: str
    created_at: datetime
    deliveries: int
    delivered: int
    delivery_id: UUID | None


class ReplayCandidate(NamedTuple):
    """A delivery that a replay may repeat; `can_be_sent` is false if its message was erased or delivered meanwhile."""

    id: UUID
    message_id: UUID
    created_at: datetime
    can_be_sent: bool


def expand_types(event_types: Sequence[str]) -> frozenset[str]:
    """Replace families such as `profile.*` by their events."""
    return frozenset(event for name in event_types for event in FAMILIES.get(name, (name,)))


def find_unknown_types(event_types: Sequence[str]) -> list[str]:
    return [name for name in event_types if name not in FAMILIES and name not in EVENT_TYPES]


# With a filter that no index supports, at most this many deliveries are scanned.
ROWS_SCANNED_MAX: Final = 10_000


class DeliveryFilter(NamedTuple):
    endpoint_id: UUID | None = None
    state: str | None = None
    type: str | None = None


class LastDelivery(NamedTuple):
    state: str
    attempts: int
    answer_status: int | None
    attempted_at: datetime | None


class WaitingDeliveries(NamedTuple):
    """The waiting deliveries of an endpoint, counted up to a limit, and the last response to one of them."""

    total: int = 0
    oldest: datetime | None = None
    attempted_at: datetime | None = None
    answer_status: int | None = None


class EndpointStatus(NamedTuple):
    """An endpoint with its last deliveries and those that wait."""

    endpoint: Endpoint
    last_deliveries: list[LastDelivery]
    waiting: WaitingDeliveries

    @property
    def is_failing(self) -> bool:
        return self.endpoint.state == "enabled" and self.endpoint.health.failing_since is not None

    @property
    def needs_attention(self) -> bool:
        """Whether a user must act: the endpoint fails, was disabled because it failed, or waits for approval."""
        return self.is_failing or self.endpoint.disabled_by in {"receiver", "failures"} or self.endpoint.is_draft

    @property
    def label(self) -> str:
        if self.endpoint.is_draft:
            return "Waits for approval"
        if self.endpoint.state == "disabled":
            return "Disabled"
        if self.is_failing:
            return "Failing"
        return "Healthy" if self.endpoint.health.last_success_at is not None else "Not used yet"

    @property
    def will_be_disabled_at(self) -> datetime | None:
        """When a failing endpoint will be disabled, if no delivery succeeds before."""
        since = self.endpoint.health.failing_since
        return since + DISABLED_AFTER if self.is_failing and since is not None else None

    @property
    def delivered(self) -> int:
        return sum(delivery.state == "delivered" for delivery in self.last_deliveries)

    @property
    def last_response(self) -> tuple[datetime, int | None] | None:
        """When the last attempt ended, and its status; the status is None if there was no response."""
        attempts = [(delivery.attempted_at, delivery.answer_status) for delivery in self.last_deliveries]
        attempts.append((self.waiting.attempted_at, self.waiting.answer_status))
        ended = [(at, status) for at, status in attempts if at is not None]
        return max(ended, key=lambda attempt: attempt[0]) if ended else None
