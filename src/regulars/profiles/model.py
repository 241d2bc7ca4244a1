"""The data of a profile, how an upsert changes it, and how its phone number is parsed."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
import phonenumbers
from msgspec import UNSET, Meta, UnsetType

from regulars.kit.errors import ValidationError, invalid
from regulars.kit.ids import Reference
from regulars.kit.phone import is_e164

ATTRIBUTE_KEY_CHARACTERS_MAX = 128
ATTRIBUTE_VALUE_CHARACTERS_MAX = 2048
ATTRIBUTES_MAX = 500

AttributeKey = Annotated[str, Meta(min_length=1, max_length=ATTRIBUTE_KEY_CHARACTERS_MAX)]


class Phone(msgspec.Struct, frozen=True):
    """A phone number in E.164; or, if it is not `reachable`, the text as the caller sent it, which cannot be texted."""

    number: str
    reachable: bool


class Profile(msgspec.Struct, frozen=True):
    id: UUID
    external_id: str
    phone_number: str | None
    phone_reachable: bool
    first_name: str | None
    last_name: str | None
    attributes: dict[str, str]
    created_at: datetime
    updated_at: datetime


class ProfileRef(msgspec.Struct, frozen=True):
    """The two ids of a profile, for other modules."""

    id: UUID
    external_id: str
    # True only for a light profile that the caller's own transaction created.
    is_new: bool = False


class ProfileUpsert(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a profile that a caller sent: an unset field does not change, None clears it, attributes are
    merged."""

    external_id: str
    phone: Phone | UnsetType | None = UNSET
    first_name: str | UnsetType | None = UNSET
    last_name: str | UnsetType | None = UNSET
    attributes: Mapping[str, str | None] = {}
    # The unknown fields of the request body.
    ignored: tuple[str, ...] = ()


class AttributeChanges(msgspec.Struct, frozen=True):
    """Values to set on one profile; None removes a key."""

    reference: Reference
    changes: Mapping[str, str | None]
    ignored: tuple[str, ...] = ()


def apply(upsert: ProfileUpsert, profile: Profile, *, now: datetime) -> Profile:
    """Return the profile after the upsert; the same object, with the same `updated_at`, if nothing changes.

    Raises ValidationError when the merge would give the profile too many attributes.
    """
    if upsert.phone is UNSET:
        phone_number, phone_reachable = profile.phone_number, profile.phone_reachable
    elif upsert.phone is None:
        phone_number, phone_reachable = None, False
    else:
        phone_number, phone_reachable = upsert.phone.number, upsert.phone.reachable
    changed = msgspec.structs.replace(
        profile,
        phone_number=phone_number,
        phone_reachable=phone_reachable,
        first_name=profile.first_name if upsert.first_name is UNSET else upsert.first_name,
        last_name=profile.last_name if upsert.last_name is UNSET else upsert.last_name,
        attributes=merge(profile.attributes, upsert.attributes),
    )
    return profile if changed == profile else with_updated_at(changed, now=now)


def new_profile(upsert: ProfileUpsert, *, identifier: UUID, now: datetime) -> Profile:
    """Return a new profile as the upsert describes it."""
    return apply(upsert, light_profile(upsert.external_id, identifier=identifier, now=now), now=now)


def light_profile(external_id: str, *, identifier: UUID, now: datetime) -> Profile:
    """Return a profile with only the caller's id, for a customer whom a sale named before the profile was sent."""
    return Profile(
        id=identifier,
        external_id=external_id,
        phone_number=None,
        phone_reachable=False,
        first_name=None,
        last_name=None,
        attributes={},
        created_at=now,
        updated_at=now,
    )


def with_updated_at(profile: Profile, *, now: datetime) -> Profile:
    # A transaction that began earlier may write later: `updated_at` never decreases.
    return msgspec.structs.replace(profile, updated_at=max(now, profile.updated_at))


def merge(attributes: dict[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the attributes after the changes; None removes a key. It is the same object if there are no changes."""
    if not changes:
        return attributes
    merged = {key: value for key, value in {**attributes, **changes}.items() if value is not None}
    # Counted after the merge, so that one call may replace 500 old keys by 500 new ones.
    if len(merged) > ATTRIBUTES_MAX:
        raise _too_many_attributes()
    return merged


def check_attributes(
    changes: Mapping[str, str | None] | Sequence[Any], *, field: str = "attributes"
) -> Mapping[str, str | None]:
    """Refuse changes with more attributes than any profile may have. An empty list is accepted as an empty map."""
    if not isinstance(changes, Mapping):
        return {}
    if sum(value is not None for value in changes.values()) > ATTRIBUTES_MAX:
        raise _too_many_attributes(field)
    return changes


def _too_many_attributes(field: str = "attributes") -> ValidationError:
    return invalid(field, "TOO_MANY", f"A profile can have at most {ATTRIBUTES_MAX} attributes.")


def read_phone(text: str, *, default_country: str | None) -> Phone:
    """Parse a phone number to E.164. A text that cannot be parsed is returned as it is, because a profile is never
    refused for its phone number.

    A number that begins with neither a plus nor `00` is read by the rules of the default country, if there is one.
    """
    if is_e164(text):
        return Phone(text, reachable=True)
    # `split` also splits at narrow and non-breaking spaces.
    normalized = " ".join(text.split())
    if normalized.startswith("00"):
        normalized = "+" + normalized[2:]
    is_international = normalized.startswith("+")
    # The library would read letters as telephone keys, or as an extension, which cannot be texted.
    if any(character.isalpha() for character in normalized) or not (is_international or default_country):
        return Phone(text, reachable=False)
    try:
        number = phonenumbers.parse(normalized, None if is_international else default_country)
    except phonenumbers.NumberParseException:
        return Phone(text, reachable=False)
    if number.extension or not phonenumbers.is_possible_number(number):
        return Phone(text, reachable=False)
    return Phone(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164), reachable=True)
