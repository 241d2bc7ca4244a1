"""What is posted to endpoints, as the OpenAPI document describes it."""

from typing import Any, Final, NamedTuple

import msgspec

from regulars.consent.wire import SubscriptionOut
from regulars.kit.wire import Timestamp
from regulars.profiles.shown import ProfileIdsOut, ProfileOut
from regulars.webhooks.model import PING, PROFILE_EVENTS, SUBSCRIPTION_EVENTS
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
    PING: PingEvent,
}


class DescribedEvent(NamedTuple):
    type: str
    sentence: str
    payload: Any
    # An example.
    body: dict[str, Any]


EVENTS: Final = tuple([DescribedEvent(it.type, it.sentence, _PAYLOADS[it.type], it.body) for it in SAMPLES])
