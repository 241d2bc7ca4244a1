"""Find profiles by their ids or phone numbers, list them, and lock them."""

from collections.abc import Collection, Sequence
from uuid import UUID

from regulars.kit.changes import ChangePosition
from regulars.kit.db import Tx
from regulars.kit.ids import ByExternalId, ById, Reference, split_references
from regulars.profiles import queries
from regulars.profiles.model import Profile, ProfileRef


async def find_profiles(
    tx: Tx, organization_id: UUID, references: Collection[Reference]
) -> dict[Reference, ProfileRef]:
    """Return the profiles that the references name; a reference without a profile is not in the result."""
    ids, external_ids = split_references(references)
    profiles: dict[Reference, ProfileRef] = {}
    if ids:
        for profile in await queries.find_profile_refs_by_id(tx, organization_id, ids):
            profiles[ById(profile.id)] = profile
    if external_ids:
        for profile in await queries.find_profile_refs_by_external_id(tx, organization_id, external_ids):
            profiles[ByExternalId(profile.external_id)] = profile
    return profiles


async def find_profiles_by_phone(
    tx: Tx, organization_id: UUID, numbers: Collection[str]
) -> dict[str, list[ProfileRef]]:
    """Return the profiles with these E.164 numbers, oldest first; a number without a profile is not in the result."""
    profiles: dict[str, list[ProfileRef]] = {}
    if numbers:
        for number, profile in await queries.find_profile_refs_by_phone(tx, organization_id, sorted(set(numbers))):
            profiles.setdefault(number, []).append(profile)
    return profiles


async def lock_profiles(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> set[UUID]:
    """Lock the profiles against deletion until the transaction ends; returns those that still exist.

    A transaction calls this before it writes a profile's id into another table: an erasure then waits, and finds the
    row that was written. Other transactions may refer to the same profile, or change its fields, at the same time.
    """
    return await queries.lock_against_deletion(tx, organization_id, sorted(set(ids))) if ids else set()


async def try_lock_profiles(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> set[UUID]:
    """Lock the profiles against changes without waiting; returns those that another transaction has locked."""
    existing = await queries.find_existing(tx, organization_id, sorted(set(ids)))
    return existing - await queries.lock_free_profiles(tx, organization_id, sorted(existing))


async def find_profile(tx: Tx, organization_id: UUID, reference: Reference) -> Profile | None:
    return (await read_profiles(tx, organization_id, [reference])).get(reference)


async def read_profiles(tx: Tx, organization_id: UUID, references: Collection[Reference]) -> dict[Reference, Profile]:
    """Like `find_profiles`, but with all fields of the profiles."""
    ids, external_ids = split_references(references)
    profiles: dict[Reference, Profile] = {}
    if ids:
        for profile in await queries.find_profiles_by_id(tx, organization_id, ids):
            profiles[ById(profile.id)] = profile
    if external_ids:
        for profile in await queries.find_profiles_by_external_id(tx, organization_id, external_ids):
            profiles[ByExternalId(profile.external_id)] = profile
    return profiles


async def list_profiles(
    tx: Tx,
    organization_id: UUID,
    *,
    external_id: str | None,
    phone_number: str | None,
    after: UUID | None = None,
    since: ChangePosition | None = None,
    limit: int,
) -> list[Profile]:
    """Return the profiles after the id `after`, in the order of creation; with `since`, the profiles that changed since
    then, in the order of their last change."""
    if "\0" in (external_id or "") or "\0" in (phone_number or ""):
        return []
    return await queries.list_profiles(
        tx, organization_id, external_id=external_id, phone_number=phone_number, after=after, since=since, limit=limit
    )


async def find_values_in_use(tx: Tx, organization_id: UUID, values: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the attributes, as (key, value), that at least one profile has."""
    return await queries.find_values_in_use(tx, organization_id, values)
