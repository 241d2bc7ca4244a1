"""The profiles' part in the erasure of a person."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import ByExternalId, ById, Reference, split_references
from regulars.profiles import queries
from regulars.profiles.model import Profile


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


async def delete_profiles(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    """Delete the rows: nothing about the person stays in this room."""
    await queries.delete_profiles(tx, organization_id, sorted(ids))
