"""Tell the rooms above which profiles changed, where somebody waits for it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
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


def light_profile_fact(identifier: bytes, external_id: str, *, at: datetime) -> bytes:
    """The payload of the fact about one light profile, as `tell_light_profiles` would record it."""
    [shown_id] = PROFILE.spell([identifier])
    moment, rest = _light_profile_at(at)
    named = msgspec.json.encode(external_id)
    return _FACT % (moment, str(UUID(bytes=identifier)).encode(), shown_id.encode(), named, rest)


_FACT = b'[{"at":"%b","changes":[{"id":"%b","change":"created","shown":{"id":"%b","external_id":%b%b]}]'


@lru_cache(maxsize=16)
def _light_profile_at(at: datetime) -> tuple[bytes, bytes]:
    """What all that are made at one moment have in common."""
    moment = format_timestamp(at).encode()
    return moment, LIGHT_PROFILE.replace(b"{at}", moment)
