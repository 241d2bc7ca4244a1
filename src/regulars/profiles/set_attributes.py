"""Set attributes on profiles that exist; this never creates one."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from regulars.catalog.entries import register_attributes
from regulars.kit.db import Tx
from regulars.kit.errors import ValidationError
from regulars.kit.ids import ByExternalId, ById, Reference, split_references
from regulars.profiles import queries
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.model import Profile, merge, touched
from regulars.profiles.tell import tell_changed


class AttributeChanges(msgspec.Struct, frozen=True):
    """Values to set on one profile; None removes a key."""

    reference: Reference
    changes: Mapping[str, str | None]
    ignored: tuple[str, ...] = ()


Outcome = Profile | ProfileNotFound | ValidationError


async def set_attributes(tx: Tx, organization_id: UUID, wanted: Sequence[AttributeChanges]) -> list[Outcome]:
    """Apply the changes in their order; each is answered with the profile as it stood afterwards."""
    ids, external_ids = split_references([change.reference for change in wanted])
    locked = await queries.lock_profiles_to_change(tx, organization_id, ids=ids, external_ids=external_ids)
    stored = {profile.id: profile for profile in locked}
    current = dict(stored)
    id_of: dict[Reference, UUID] = {ById(profile.id): profile.id for profile in locked}
    id_of |= {ByExternalId(profile.external_id): profile.id for profile in locked}
    first_values: dict[str, str] = {}
    outcomes: list[Outcome] = []
    updates: list[Profile] = []
    for change in wanted:
        identifier = id_of.get(change.reference)
        if identifier is None:
            outcomes.append(ProfileNotFound("No profile has this id or external_id."))
            continue
        profile = current[identifier]
        try:
            merged = merge(profile.attributes, change.changes)
        except ValidationError as error:
            outcomes.append(error)
            continue
        if merged != profile.attributes:
            profile = touched(msgspec.structs.replace(profile, attributes=merged), now=tx.now)
            current[identifier] = profile
            updates.append(profile)
            for key in change.changes.keys() & merged.keys():
                first_values.setdefault(key, merged[key])
        outcomes.append(profile)
    changed = [profile for profile in current.values() if profile is not stored[profile.id]]
    if changed:
        await queries.update_profiles(tx, organization_id, changed)
    await register_attributes(tx, organization_id, first_values)
    await tell_changed(tx, organization_id, [(profile, "updated") for profile in updates])
    return outcomes
