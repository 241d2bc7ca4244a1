"""The profiles' part in the erasure of a person."""

from collections.abc import Collection, Sequence
from uuid import UUID

import msgspec

from regulars.kit.db import Tx
from regulars.kit.ids import ByExternalId, ById, Reference, split_references
from regulars.profiles import queries
from regulars.profiles.facts import ProfilesChanged
from regulars.profiles.model import Profile
from regulars.profiles.tell import tell_changed
from regulars.work.erase import rewrite_waiting_facts


async def lock_profiles_to_erase(
    tx: Tx, organization_id: UUID, references: Collection[Reference]
) -> dict[Reference, Profile]:
    """The profiles that the references name, held against everyone else: nobody can begin to refer to them now."""
    ids, external_ids = split_references(references)
    found: dict[Reference, Profile] = {}
    for profile in await queries.lock_profiles_to_delete(tx, organization_id, ids=ids, external_ids=external_ids):
        found[ById(profile.id)] = profile
        found[ByExternalId(profile.external_id)] = profile
    return {reference: found[reference] for reference in references if reference in found}


async def delete_profiles(tx: Tx, organization_id: UUID, profiles: Sequence[Profile]) -> None:
    """Delete the rows and what waits to be told about them; that they are gone is told with their two ids."""
    ids = [profile.id for profile in profiles]
    await queries.delete_profiles(tx, organization_id, sorted(ids))
    await forget_changes(tx, organization_id, ids)
    await tell_changed(tx, organization_id, [(profile, "deleted") for profile in profiles])


async def forget_changes(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    """Take the people out of changes that nobody has heard yet; that they were deleted stays to be told."""
    gone = set(ids)

    def without(fact: ProfilesChanged) -> ProfilesChanged | None:
        kept = tuple(one for one in fact.changes if one.id not in gone or one.change == "deleted")
        return msgspec.structs.replace(fact, changes=kept) if kept else None

    await rewrite_waiting_facts(tx, organization_id, ProfilesChanged, gone, without)
