"""What is posted to endpoints, as the OpenAPI document describes it."""

from typing import Any, Final, NamedTuple

import msgspec

from regulars.consent.wire import LinkedProfileOut, SubscriptionOut
from regulars.kit.wire import Timestamp
from regulars.profiles.wire import ProfileIdsOut, ProfileOut
from regulars.sales.encode import SalesEventOut
from regulars.webhooks.model import MESSAGE_EVENTS, PING, PROFILE_EVENTS, SALES_EVENTS, SUBSCRIPTION_EVENTS
from regulars.webhooks.samples import SAMPLES


class ProfileEvent(msgspec.Struct):
    """The profile as the API would have shown it right after the change."""

    type: str
    timestamp: Timestamp
    data: ProfileOut


class ProfileDeletedEvent(msgspec.Struct):
    type: str
    timestamp: Timestamp
    data: ProfileIdsOut


class SubscriptionChange(msgspec.Struct):
    subscription: SubscriptionOut
    outcome: str


class SubscriptionEvent(msgspec.Struct):
    """The subscription as the API would have shown it right after the change."""

    type: str
    timestamp: Timestamp
    data: SubscriptionChange


class SalesEventRecordedEvent(msgspec.Struct):
    """The sale as the API shows it."""

    type: str
    timestamp: Timestamp
    data: SalesEventOut


class EventMessageOut(msgspec.Struct):
    """A text that was sent, or a reply that came."""

    id: str
    direction: str
    profile: LinkedProfileOut | None
    phone_number: str | None
    text: str | None
    state: str | None
    reason: str | None
    created_at: Timestamp


class MessageChange(msgspec.Struct):
    message: EventMessageOut


class MessageEvent(msgspec.Struct):
    type: str
    timestamp: Timestamp
    data: MessageChange


class PingData(msgspec.Struct):
    webhook: str


class PingEvent(msgspec.Struct):
    type: str
    timestamp: Timestamp
    data: PingData


_PAYLOADS: Final[dict[str, type[msgspec.Struct]]] = {
    **dict.fromkeys(PROFILE_EVENTS, ProfileEvent),
    "profile.deleted": ProfileDeletedEvent,
    **dict.fromkeys(SUBSCRIPTION_EVENTS, SubscriptionEvent),
    **dict.fromkeys(SALES_EVENTS, SalesEventRecordedEvent),
    **dict.fromkeys(MESSAGE_EVENTS, MessageEvent),
    PING: PingEvent,
}


class DescribedEvent(NamedTuple):
    type: str
    sentence: str
    payload: Any
    # An example.
    body: dict[str, Any]


EVENTS: Final = tuple([DescribedEvent(it.type, it.sentence, _PAYLOADS[it.type], it.body) for it in SAMPLES])
