"""A profile as callers see it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from regulars.kit.clock import format_timestamp
from regulars.kit.ids import PROFILE
from regulars.kit.wire import Timestamp
from regulars.profiles.model import Profile


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


def show_profile(profile: Profile) -> ProfileOut:
    return ProfileOut(
        id=PROFILE.encode(profile.id),
        external_id=profile.external_id,
        phone_number=profile.phone_number,
        first_name=profile.first_name,
        last_name=profile.last_name,
        attributes=in_order(profile.attributes),
        created_at=format_timestamp(profile.created_at),
        updated_at=format_timestamp(profile.updated_at),
    )


def show_ids(profile: Profile) -> ProfileIdsOut:
    return ProfileIdsOut(PROFILE.encode(profile.id), profile.external_id)


def in_order(attributes: dict[str, str]) -> dict[str, str]:
    """The database has an order of its own; callers see the same one in every answer."""
    return dict(sorted(attributes.items()))
