"""The facts of profiles: events that are stored with the change, for listeners in other modules."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import ClassVar, Literal
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.profiles.model import Profile, ProfileRef, light_profile
from regulars.profiles.wire import to_profile_ids_out, to_profile_out
from regulars.work import outbox
from regulars.work.facts import Fact

Change = Literal["created", "updated", "deleted"]


class ProfileChange(msgspec.Struct, frozen=True):
    """One change of one profile. `shown` is the profile as the API returned it right after; for a deleted profile, its
    two ids."""

    id: UUID
    change: Change
    shown: msgspec.Raw


class ProfilesChanged(Fact, frozen=True):
    """Profiles were created, updated or deleted; every change that the API would show is in exactly one fact."""

    topic: ClassVar[str] = "profiles.changed"
    # The fact is stored only for organizations in which a listener needs it.
    on_interest: ClassVar[bool] = True

    # The time of the transaction that changed the profiles.
    at: datetime
    changes: tuple[ProfileChange, ...]


_EMPTY_EXTERNAL_ID = b'"external_id":""'


async def publish_changes(tx: Tx, organization_id: UUID, changes: Sequence[tuple[Profile, Change]]) -> None:
    """Record the changes in order, each with the profile right after it, if a listener needs them (`has_interest`)."""
    if not changes or not await outbox.has_interest(tx, organization_id, ProfilesChanged):
        return
    published = []
    for profile, change in changes:
        shown = to_profile_ids_out(profile) if change == "deleted" else to_profile_out(profile)
        published.append(ProfileChange(profile.id, change, msgspec.Raw(msgspec.json.encode(shown))))
    await outbox.record(tx, organization_id, [ProfilesChanged(tx.now, tuple(published))])


async def publish_light_profiles(tx: Tx, organization_id: UUID, profiles: Iterable[ProfileRef]) -> None:
    """Publish the light profiles (with only an id) that this transaction created and will not delete again."""
    created = [light_profile(profile.external_id, identifier=profile.id, now=tx.now) for profile in profiles]
    await publish_changes(tx, organization_id, [(profile, "created") for profile in created])


def _encode_light_profile_end() -> bytes:
    moment = datetime(2000, 1, 1, tzinfo=UTC)
    profile_json = msgspec.json.encode(to_profile_out(light_profile("", identifier=UUID(int=0), now=moment)))
    end = profile_json[profile_json.index(_EMPTY_EXTERNAL_ID) + len(_EMPTY_EXTERNAL_ID) :]
    return end.replace(format_timestamp(moment).encode(), b"{at}") + b"}"


# The end of the JSON of a light profile (a profile with only an id), after its external_id, with the placeholder `{at}`
# for its times. It is the same for all light profiles; a SQL statement of `sales` uses it to write this fact.
LIGHT_PROFILE_JSON_END = _encode_light_profile_end()
