"""Tell the rooms above which profiles changed, where somebody waits for it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.profiles.facts import Change, ProfileChange, ProfilesChanged
from regulars.profiles.model import Profile, ProfileRef, light_profile
from regulars.profiles.shown import show_ids, show_profile
from regulars.work import outbox

_NO_NAME = b'"external_id":""'


async def tell_changed(tx: Tx, organization_id: UUID, changes: Sequence[tuple[Profile, Change]]) -> None:
    """Record the changes in their order, each with the profile as it stood right after it."""
    if not changes or not await outbox.is_wanted(tx, organization_id, ProfilesChanged):
        return
    told = [
        ProfileChange(
            profile.id,
            change,
            msgspec.Raw(msgspec.json.encode(show_ids(profile) if change == "deleted" else show_profile(profile))),
        )
        for profile, change in changes
    ]
    await outbox.record(tx, organization_id, [ProfilesChanged(tx.now, tuple(told))])


async def tell_light_profiles(tx: Tx, organization_id: UUID, profiles: Iterable[ProfileRef]) -> None:
    """For whoever made light profiles, once it is sure that they stay."""
    made = [light_profile(profile.external_id, identifier=profile.id, now=tx.now) for profile in profiles]
    await tell_changed(tx, organization_id, [(profile, "created") for profile in made])


def _light_profile() -> bytes:
    moment = datetime(2000, 1, 1, tzinfo=UTC)
    shown = msgspec.json.encode(show_profile(light_profile("", identifier=UUID(int=0), now=moment)))
    after_name = shown[shown.index(_NO_NAME) + len(_NO_NAME) :]
    return after_name.replace(format_timestamp(moment).encode(), b"{at}") + b"}"


# How such a fact goes on after a light profile's external_id, for a statement that writes it: what is told of one
# beyond its ids is the same for all but for their time, whose places are marked.
LIGHT_PROFILE = _light_profile()
