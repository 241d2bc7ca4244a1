"""All webhook events with their payload types and samples, and example receivers, for the API reference and docs."""

import json
from importlib import resources
from typing import Any, Final, NamedTuple

import msgspec

from regulars.consent.wire import LinkedProfileOut, SubscriptionOut
from regulars.kit.wire import Timestamp
from regulars.profiles.wire import ProfileIdsOut, ProfileOut
from regulars.sales.encode import SalesEventOut
from regulars.webhooks.model import MESSAGE_EVENTS, PING, PROFILE_EVENTS, SALES_EVENTS, SUBSCRIPTION_EVENTS

_PROFILE_ID: Final = "prof_01jkv5q8z3f7r9t2x4b6d8h0ma"
_PROFILE: Final = {
    "id": _PROFILE_ID,
    "external_id": "CUST-1042",
    "phone_number": "+33612345678",
    "first_name": "Zoë",
    "last_name": None,
    "attributes": {"size": "M"},
    "created_at": "2026-03-02T09:30:00.000Z",
    "updated_at": "2026-03-02T09:30:00.000Z",
}
_SUBSCRIPTION: Final = {
    "id": "sub_01jkv5q8z3f7r9t2x4b6d8h0ma",
    "profile": {"id": _PROFILE_ID, "external_id": "CUST-1042"},
    "phone_number": "+33612345678",
    "status": "SUBSCRIBED",
    "consent_source": "WEBSITE",
    "consented_at": "2026-03-02T09:30:00.000Z",
    "unsubscribed_at": None,
    "consent_proof": None,
    "store": None,
    "created_at": "2026-03-02T09:32:00.000Z",
    "updated_at": "2026-03-02T09:32:00.000Z",
}


class EventSample(NamedTuple):
    type: str
    sentence: str
    timestamp: str
    data: dict[str, Any]

    @property
    def body(self) -> dict[str, Any]:
        return {"type": self.type, "timestamp": self.timestamp, "data": self.data}

    @property
    def text(self) -> str:
        return json.dumps(self.body, indent=2, ensure_ascii=False)

    @property
    def payload(self) -> Any:
        """The type of the body."""
        return _PAYLOADS[self.type]


def _subscription_sample(outcome: str, sentence: str, timestamp: str, **changes: Any) -> EventSample:
    data = {"subscription": {**_SUBSCRIPTION, "updated_at": timestamp, **changes}, "outcome": outcome}
    return EventSample(f"subscription.{outcome}", sentence, timestamp, data)


_SALE: Final = {
    "id": "evt_01jkv5q8z3f7r9t2x4b6d8h0ma",
    "external_id": "PARIS-01:000123",
    "type": "PURCHASE",
    "occurred_at": "2026-03-02T09:32:10.000Z",
    "store": {"id": "store_01jkv5q8z3f7r9t2x4b6d8h0ma", "external_id": "PARIS-01"},
    "profile": {"id": _PROFILE_ID, "external_id": "CUST-1042"},
    "currency": "EUR",
    "total_amount_cents": 1990,
    "total_discount_cents": 0,
    "total_tax_cents": None,
    "loyalty": None,
    "payments": None,
    "metadata": None,
    "source": None,
    "line_items": [
        {
            "external_id": "1",
            "product": {"external_id": "SKU-1", "name": "Scarf", "properties": {}},
            "quantity": 1,
            "unit": None,
            "unit_price_cents": None,
            "total_price_cents": 1990,
            "discount_cents": None,
            "tax_cents": None,
        }
    ],
    "created_at": "2026-03-02T09:33:00.000Z",
}


def _message(name: str, sentence: str, **changes: Any) -> EventSample:
    message = {
        "id": "txt_01jkv5q8z3f7r9t2x4b6d8h0ma",
        "direction": "outbound",
        "profile": {"id": _PROFILE_ID, "external_id": "CUST-1042"},
        "phone_number": "+33612345678",
        "text": "Your repair is ready.",
        "state": name,
        "reason": None,
        "created_at": "2026-03-02T10:00:00.000Z",
        **changes,
    }
    return EventSample(f"message.{name}", sentence, "2026-03-02T10:00:05.000Z", {"message": message})


EVENTS: Final = (
    EventSample(
        "profile.created",
        "A new customer, also one first seen on a sale with only an ID.",
        "2026-03-02T09:30:00.000Z",
        _PROFILE,
    ),
    EventSample(
        "profile.updated",
        "The name, the phone number or an attribute of a customer changed.",
        "2026-03-02T09:31:00.000Z",
        {**_PROFILE, "last_name": "Martin", "updated_at": "2026-03-02T09:31:00.000Z"},
    ),
    EventSample(
        "profile.deleted",
        "A customer was erased. Erase them in your system too.",
        "2026-03-09T10:00:00.000Z",
        {"id": _PROFILE_ID, "external_id": "CUST-1042"},
    ),
    _subscription_sample("created", "A number opted in for the first time.", "2026-03-02T09:32:00.000Z"),
    _subscription_sample(
        "updated",
        "The time, source, proof or customer of an opt-in changed.",
        "2026-03-03T09:30:00.000Z",
        consent_source="CHECKOUT",
    ),
    _subscription_sample(
        "unsubscribed",
        "A number opted out: over the API, with STOP by text, or by an erasure, which sends the ID without the number.",
        "2026-03-04T09:30:00.000Z",
        consent_source="CHECKOUT",
        status="UNSUBSCRIBED",
        unsubscribed_at="2026-03-04T09:30:00.000Z",
    ),
    _subscription_sample(
        "resubscribed",
        "A number that had opted out opted in again.",
        "2026-03-05T09:30:00.000Z",
        consented_at="2026-03-05T09:30:00.000Z",
    ),
    EventSample(
        "sales_event.recorded",
        "A new sale, as the API returns it.",
        "2026-03-02T09:33:00.000Z",
        _SALE,
    ),
    _message("sent", "A text of your team or of a campaign, not of a journey, was handed to the provider."),
    _message("delivered", "The provider says that the text arrived."),
    _message(
        "failed", "The provider refused the text, or it did not arrive. The field reason says why.", reason="refused"
    ),
    _message(
        "received",
        "A customer wrote a text, also a keyword such as STOP.",
        id="rpl_01jkv5q8z3f7r9t2x4b6d8h0ma",
        direction="inbound",
        text="Are you open on Sunday?",
        state=None,
    ),
    EventSample(
        "webhook.ping",
        "A user sent a test event. Every endpoint gets it.",
        "2026-03-02T09:30:00.000Z",
        {"webhook": "wh_01jkv5q8z3f7r9t2x4b6d8h0ma"},
    ),
)


def read_example_receiver(language: str) -> str:
    """Return the source of a receiver in `python` or `node` that uses only the standard library."""
    return resources.files("regulars.webhooks").joinpath("examples", f"receiver_{language}.txt").read_text("utf-8")


class _Event(msgspec.Struct):
    """What the bodies of all events have in common; each adds its `data`."""

    type: str
    timestamp: Timestamp


class ProfileEvent(_Event):
    """The profile as the API shows it right after the change."""

    data: ProfileOut


class ProfileDeletedEvent(_Event):
    data: ProfileIdsOut


class SubscriptionChange(msgspec.Struct):
    subscription: SubscriptionOut
    outcome: str


class SubscriptionEvent(_Event):
    """The subscription as the API shows it right after the change."""

    data: SubscriptionChange


class SalesEventRecordedEvent(_Event):
    """The sale as the API shows it."""

    data: SalesEventOut


class EventMessageOut(msgspec.Struct):
    """A text that was sent, or a reply that was received."""

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


class MessageEvent(_Event):
    data: MessageChange


class PingData(msgspec.Struct):
    webhook: str


class PingEvent(_Event):
    data: PingData


_PAYLOADS: Final[dict[str, type[msgspec.Struct]]] = {
    **dict.fromkeys(PROFILE_EVENTS, ProfileEvent),
    "profile.deleted": ProfileDeletedEvent,
    **dict.fromkeys(SUBSCRIPTION_EVENTS, SubscriptionEvent),
    **dict.fromkeys(SALES_EVENTS, SalesEventRecordedEvent),
    **dict.fromkeys(MESSAGE_EVENTS, MessageEvent),
    PING: PingEvent,
}
