"""The request and response types of profiles: decode upserts and attributes, and encode a profile."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from regulars.kit.body_reader import NOT_JSON, Reader, members_decoder
from regulars.kit.clock import format_timestamp
from regulars.kit.ids import PROFILE, Reference
from regulars.kit.text import check_external_id
from regulars.kit.wire import EmptyMap, ExternalIdIn, Text, Timestamp
from regulars.profiles.model import (
    ATTRIBUTE_VALUE_CHARACTERS_MAX,
    AttributeChanges,
    AttributeKey,
    Profile,
    ProfileUpsert,
    check_attributes,
    read_phone,
)

AttributeIn = Annotated[
    str, Meta(max_length=ATTRIBUTE_VALUE_CHARACTERS_MAX, extra={"hint": "Numbers and booleans are sent as text."})
]
FlatAttributesIn = Annotated[dict[AttributeKey, AttributeIn | None], Meta(extra={"check": check_attributes})]
AttributesIn = Annotated[
    FlatAttributesIn | EmptyMap,
    Meta(
        description="Merged into the attributes the profile has. null removes a key; numbers and booleans are sent as "
        "strings. An unknown key is registered with the type of its first value.",
        examples=[{"loyalty_tier": "gold", "newsletter": "true"}],
    ),
]


class ProfileIn(msgspec.Struct):
    """A profile to create or update. A field left out is unchanged, null clears it."""

    external_id: Annotated[
        ExternalIdIn,
        Meta(
            description="Your own id of the customer. It must not start with `prof_`, `sub_`, `store_` or `evt_`.",
            examples=["CUST-1042"],
        ),
    ]
    phone_number: Annotated[
        Text | UnsetType | None,
        Meta(
            description="Kept in E.164 where it can be read, otherwise as sent. It gives no consent to text messages.",
            examples=["+33612345678"],
        ),
    ] = UNSET
    first_name: Annotated[Text | UnsetType | None, Meta(examples=["Ada"])] = UNSET
    last_name: Annotated[Text | UnsetType | None, Meta(examples=["Martin"])] = UNSET
    attributes: AttributesIn | UnsetType | None = UNSET


class WrappedAttributesIn(msgspec.Struct):
    """Attributes to set. The map alone, without the field `attributes` around it, is accepted too."""

    attributes: AttributesIn


_profiles: Reader[ProfileIn] = Reader(ProfileIn)
_wrapped_attributes: Reader[WrappedAttributesIn] = Reader(WrappedAttributesIn)
_flat_attributes: Reader[dict[str, str | None]] = Reader(FlatAttributesIn)


def decode_profile(body: bytes, *, default_country: str | None) -> ProfileUpsert:
    """Decode and validate one profile, or raise an `ApiError`."""
    return _profiles.read(body, partial(_upsert, default_country=default_country))


def _upsert(sent: ProfileIn, ignored: tuple[str, ...], *, default_country: str | None) -> ProfileUpsert:
    phone_number, attributes = sent.phone_number, sent.attributes
    return ProfileUpsert(
        external_id=check_external_id(sent.external_id),
        phone=read_phone(phone_number, default_country=default_country)
        if isinstance(phone_number, str)
        else phone_number,
        first_name=sent.first_name,
        last_name=sent.last_name,
        attributes=check_attributes(attributes or {}) if attributes is not UNSET else {},
        ignored=ignored,
    )


def decode_attributes(body: bytes, reference: Reference) -> AttributeChanges:
    """Decode a body that is the map of attributes, or an object with the map in its field `attributes`. A body with a
    field `attributes` is always read as the object."""

    def change(changes: Mapping[str, str | None] | list[Any], ignored: tuple[str, ...]) -> AttributeChanges:
        return AttributeChanges(reference, check_attributes(changes), ignored)

    if _has_attributes(body):
        return _wrapped_attributes.read(body, lambda sent, ignored: change(sent.attributes, ignored))
    return _flat_attributes.read(body, change)


def _has_attributes(body: bytes) -> bool:
    try:
        return "attributes" in members_decoder.decode(body)
    except NOT_JSON:
        # Not valid JSON: the reader that is then used reports the error.
        return False


class ProfileOut(msgspec.Struct):
    id: Annotated[str, Meta(description="The canonical id.", examples=["prof_01jkv5q8z3f7r9t2x4b6d8h0ma"])]
    external_id: Annotated[str, Meta(examples=["CUST-1042"])]
    phone_number: Annotated[str | None, Meta(examples=["+33612345678"])]
    first_name: str | None
    last_name: str | None
    attributes: Annotated[dict[str, str], Meta(description="All attributes, ordered by key.")]
    created_at: Timestamp
    updated_at: Annotated[Timestamp, Meta(description="Moves only when a write changes something.")]


class ProfileIdsOut(msgspec.Struct):
    id: str
    external_id: str


def to_profile_out(profile: Profile) -> ProfileOut:
    return ProfileOut(
        id=PROFILE.encode(profile.id),
        external_id=profile.external_id,
        phone_number=profile.phone_number,
        first_name=profile.first_name,
        last_name=profile.last_name,
        attributes=sort_attributes(profile.attributes),
        created_at=format_timestamp(profile.created_at),
        updated_at=format_timestamp(profile.updated_at),
    )


def to_profile_ids_out(profile: Profile) -> ProfileIdsOut:
    return ProfileIdsOut(PROFILE.encode(profile.id), profile.external_id)


def sort_attributes(attributes: dict[str, str]) -> dict[str, str]:
    """Sort by key: jsonb stores keys in another order, and callers should see the same order in every response."""
    return dict(sorted(attributes.items()))
