"""The request and response types of the consent API; the OpenAPI document is generated from them."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from regulars.consent.model import ConsentSource, Kind, Outcome, Reason
from regulars.consent.phone import NUMBER_PATTERN, read_lenient_number, read_opt_in_number
from regulars.kit.errors import invalid
from regulars.kit.json import STRING_CHARACTERS_MAX
from regulars.kit.pagination import Page
from regulars.kit.wire import ReferenceIn, Text, Timestamp, TimestampIn
from regulars.work.facts import AutomationOut

SOURCE_TEXT_CHARACTERS_MAX = 10_000
CHECK_ITEMS_MAX = 500
# A scheme, a host, and no white space or control character anywhere.
URL_PATTERN = r"^[hH][tT][tT][pP][sS]?://[^\s/?#\x00-\x1f\x7f][^\s\x00-\x1f\x7f]*$"

_URL = re.compile(URL_PATTERN)

PhoneNumber = Annotated[
    str,
    Meta(
        description="In international format with a leading plus; stored and returned in E.164.",
        examples=["+33612345678"],
        extra={"check": read_opt_in_number},
        extra_json_schema={"pattern": NUMBER_PATTERN, "format": "phone-number"},
    ),
]
# The check of this number also gets the organization's default country, which `takes` names.
OptOutNumber = Annotated[
    Text,
    Meta(
        description="As a profile's: in international format with a leading plus or `00`, or as in the organization's "
        "default country where it has one.",
        examples=["+33612345678"],
        extra={"check": read_lenient_number, "takes": ("default_country",)},
        extra_json_schema={"format": "phone-number"},
    ),
]
ProfileReference = Annotated[
    ReferenceIn,
    Meta(
        description="The profile, by its `external_id` or its `prof_` id. It must exist.",
        examples=["CUST-1042"],
    ),
]
# Responses contain only stored values, which need no validation: their enums are only for the OpenAPI document.
# The short responses called receipts are for API keys that may write but not read.
SourceOut = Annotated[str, Meta(extra_json_schema={"enum": list(get_args(ConsentSource))})]
StatusOut = Annotated[
    str,
    Meta(
        description="`PENDING` is reserved for a double opt-in.",
        extra_json_schema={"enum": ["SUBSCRIBED", "UNSUBSCRIBED", "PENDING"]},
    ),
]
KindOut = Annotated[str, Meta(extra_json_schema={"enum": [kind.value for kind in Kind]})]
OutcomeOut = Annotated[str, Meta(extra_json_schema={"enum": [outcome.value for outcome in Outcome]})]
OptInOutcomeOut = Annotated[
    str,
    Meta(
        extra_json_schema={"enum": ["created", "resubscribed", "updated", "already_subscribed", "superseded"]},
    ),
]
OptOutOutcomeOut = Annotated[
    str, Meta(extra_json_schema={"enum": ["unsubscribed", "already_unsubscribed", "superseded"]})
]
Digest = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]


def check_url(text: str, *, field: str) -> None:
    if _URL.fullmatch(text) is None or any(character.isspace() for character in text):
        raise invalid(field, "FORMAT", "It must be an http or https URL without white space.")


class ProofIn(msgspec.Struct):
    """What the person agreed to. A field left out, or null, keeps the stored value while the number is subscribed."""

    terms_url: (
        Annotated[
            str,
            Meta(
                max_length=STRING_CHARACTERS_MAX,
                description="An http or https URL.",
                examples=["https://shop.example/terms"],
                extra={"check": check_url},
                extra_json_schema={"pattern": URL_PATTERN},
            ),
        ]
        | None
    ) = None
    terms_version: Text | None = None
    source_text: (
        Annotated[str, Meta(max_length=SOURCE_TEXT_CHARACTERS_MAX, description="The words the person agreed to.")]
        | None
    ) = None


class OptInIn(msgspec.Struct, kw_only=True):
    """A consent to be texted on one number."""

    phone_number: PhoneNumber
    profile_id: ProfileReference | None = None
    store_id: Annotated[
        ReferenceIn | None,
        Meta(description="Where it was given: the store's `external_id` or `store_` id. It must exist."),
    ] = None
    consent_source: ConsentSource
    consented_at: Annotated[
        TimestampIn, Meta(description="When the person consented; at most five minutes ahead of the service's clock.")
    ]
    consent_proof: ProofIn | None = None


class OptOutIn(msgspec.Struct):
    """A withdrawal of consent, by number, by profile, or by both; one of the two is required."""

    phone_number: OptOutNumber | None = None
    profile_id: ProfileReference | None = None
    unsubscribed_at: (
        Annotated[
            TimestampIn,
            Meta(
                description="When the person withdrew; at most five minutes ahead of the service's clock. Without it "
                "the withdrawal counts from now on, after everything already known."
            ),
        ]
        | None
    ) = None
    reason: Text | None = None
    source: Annotated[Text, Meta(description="Free text naming where the withdrawal was recorded.")] | None = None


def check_named(sent: Mapping[str, Any], *, field: str) -> None:
    """Refuse a withdrawal that names neither a number nor a profile."""
    del field  # the error is about the whole body
    if sent.get("phone_number") is None and sent.get("profile_id") is None:
        raise invalid("phone_number", "REQUIRED", "Either phone_number or profile_id is required.")


OptOutBody = Annotated[OptOutIn, Meta(extra={"check": check_named})]


class LinkedProfileOut(msgspec.Struct):
    id: Annotated[str, Meta(examples=["prof_01jkv5q8z3f7r9t2x4b6d8h0ma"])]
    external_id: Annotated[str, Meta(examples=["CUST-1042"])]


def check_one_named(sent: Mapping[str, Any], *, field: str) -> None:
    """Refuse an item of a consent check that names both a number and a profile, or neither."""
    if (sent.get("phone_number") is None) == (sent.get("profile_id") is None):
        raise invalid(field, "EITHER_OR", "It must have either phone_number or profile_id.")


# As `check_one_named` checks it; a field that is null counts as left out.
_ONE_NAMED = {
    "oneOf": [
        {"required": [field], "properties": {field: {"type": "string"}}} for field in ("phone_number", "profile_id")
    ]
}


class QuestionIn(msgspec.Struct):
    """The subject of a consent check: either a number or a profile."""

    phone_number: Annotated[
        Text | None, Meta(description="As for opt-out; a number that cannot be read gets a result that says so.")
    ] = None
    profile_id: ReferenceIn | None = None


class CheckIn(msgspec.Struct):
    items: Annotated[
        list[Annotated[QuestionIn, Meta(extra={"check": check_one_named}, extra_json_schema=_ONE_NAMED)]],
        Meta(min_length=1, max_length=CHECK_ITEMS_MAX, description="Each with either phone_number or profile_id."),
    ]


class LinkedStoreOut(msgspec.Struct):
    id: Annotated[str, Meta(examples=["store_01jkv5q8z3f7r9t2x4b6d8h0ma"])]
    external_id: Annotated[str, Meta(examples=["PARIS-01"])]


class ProofOut(msgspec.Struct):
    terms_url: str | None
    terms_version: str | None
    source_text: str | None


class SubscriptionOut(msgspec.Struct):
    id: Annotated[str, Meta(description="The canonical id.", examples=["sub_01jkv5q8z3f7r9t2x4b6d8h0ma"])]
    profile: LinkedProfileOut | None
    store: Annotated[
        LinkedStoreOut | None, Meta(description="Where the consent on record was given; null when that is not known.")
    ]
    phone_number: Annotated[
        str | None, Meta(description="In E.164; null when the person was erased.", examples=["+33612345678"])
    ]
    status: StatusOut
    consent_source: SourceOut | None
    consented_at: Timestamp | None
    unsubscribed_at: Annotated[Timestamp | None, Meta(description="The latest withdrawal; null while subscribed.")]
    consent_proof: ProofOut | None
    created_at: Timestamp
    updated_at: Timestamp


class VerdictOut(msgspec.Struct):
    """Whether one number or profile may be texted, since when, and why; what is not known is null."""

    phone_number: Annotated[str | None, Meta(description="The number a text would go to, in E.164.")]
    profile: LinkedProfileOut | None
    may_text: bool
    status: StatusOut | None
    since: Annotated[Timestamp | None, Meta(description="When the consent was given, or withdrawn.")]
    reason: Annotated[
        str,
        Meta(
            description="`UNSUBSCRIBED` after any withdrawal, `DO_NOT_CONTACT` when the person was erased.",
            examples=[reason.value for reason in Reason],
        ),
    ]


class CheckOut(msgspec.Struct):
    results: Annotated[list[VerdictOut], Meta(description="One for each item, in the same order.")]


class OptInOut(msgspec.Struct):
    subscription: SubscriptionOut
    outcome: OptInOutcomeOut
    automation: AutomationOut


class OptOutOut(msgspec.Struct):
    subscription: Annotated[SubscriptionOut, Meta(description="Of several, the one with the latest consent.")]
    subscriptions: Annotated[list[SubscriptionOut], Meta(description="Every subscription the withdrawal is about.")]
    outcome: OptOutOutcomeOut
    automation: AutomationOut


class SubscriptionReceipt(msgspec.Struct):
    id: str
    status: StatusOut
    phone_number: Annotated[
        str | msgspec.UnsetType, Meta(description="In E.164; only if the caller named the number.")
    ] = msgspec.UNSET


class OptInReceipt(msgspec.Struct):
    subscription: SubscriptionReceipt
    outcome: OptInOutcomeOut
    automation: AutomationOut


class OptOutReceipt(msgspec.Struct):
    subscription: SubscriptionReceipt
    subscriptions: list[SubscriptionReceipt]
    outcome: OptOutOutcomeOut
    automation: AutomationOut


class SubscriptionPageOut(Page[SubscriptionOut], frozen=True):
    pass


class EntryOut(msgspec.Struct):
    """One consent event, as it arrived. `hash` covers every field but payload and salt, which `commitment` covers."""

    sequence: Annotated[int, Meta(description="1 for the first event of the number.")]
    kind: KindOut
    outcome: OutcomeOut
    effective_at: Annotated[Timestamp, Meta(description="The position of the event in the order of events.")]
    claimed_at: Annotated[Timestamp | None, Meta(description="The time the caller stated.")]
    received_at: Timestamp
    payload: Annotated[
        msgspec.Raw,
        Meta(
            description="The content of the event, and its key or message; null once it was erased.",
            extra_json_schema={"type": ["object", "null"]},
        ),
    ]
    salt: Annotated[Digest | None, Meta(description="The key of the commitment; null once it was erased.")]
    commitment: Annotated[Digest, Meta(description="HMAC-SHA256 of the payload's bytes under the salt.")]
    previous_hash: Digest
    hash: Digest


class HistoryPageOut(Page[EntryOut], frozen=True):
    pass
