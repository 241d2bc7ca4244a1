"""Every event with a sample of what is sent, and receivers that check it; docs/webhooks.md shows the same."""

import json
from importlib import resources
from typing import Any, Final, NamedTuple

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


class Sample(NamedTuple):
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


def _subscription(outcome: str, sentence: str, timestamp: str, **changes: Any) -> Sample:
    data = {"subscription": {**_SUBSCRIPTION, "updated_at": timestamp, **changes}, "outcome": outcome}
    return Sample(f"subscription.{outcome}", sentence, timestamp, data)


SAMPLES: Final = (
    Sample(
        "profile.created",
        "A customer is new; also the light profile that a sale makes of a customer it names first.",
        "2026-03-02T09:30:00.000Z",
        _PROFILE,
    ),
    Sample(
        "profile.updated",
        "A name, a number or an attribute of a customer changed.",
        "2026-03-02T09:31:00.000Z",
        {**_PROFILE, "last_name": "Martin", "updated_at": "2026-03-02T09:31:00.000Z"},
    ),
    Sample(
        "profile.deleted",
        "The person was erased; erase them too.",
        "2026-03-09T10:00:00.000Z",
        {"id": _PROFILE_ID, "external_id": "CUST-1042"},
    ),
    _subscription("created", "A number may be texted for the first time.", "2026-03-02T09:32:00.000Z"),
    _subscription(
        "updated",
        "Another time, source, proof or profile of a consent that stands.",
        "2026-03-03T09:30:00.000Z",
        consent_source="CHECKOUT",
    ),
    _subscription(
        "unsubscribed",
        "An opt-out over the API, a STOP by text, or an erasure, which sends the id without the number.",
        "2026-03-04T09:30:00.000Z",
        consent_source="CHECKOUT",
        status="UNSUBSCRIBED",
        unsubscribed_at="2026-03-04T09:30:00.000Z",
    ),
    _subscription(
        "resubscribed",
        "A number that had withdrawn may be texted again.",
        "2026-03-05T09:30:00.000Z",
        consented_at="2026-03-05T09:30:00.000Z",
    ),
    Sample(
        "webhook.ping",
        "Only when somebody asks for it; every endpoint takes it.",
        "2026-03-02T09:30:00.000Z",
        {"webhook": "wh_01jkv5q8z3f7r9t2x4b6d8h0ma"},
    ),
)


def receiver(language: str) -> str:
    """A whole receiver in `python` or `node`, with nothing but what the language brings."""
    return resources.files("regulars.webhooks").joinpath("examples", f"receiver_{language}.txt").read_text("utf-8")
