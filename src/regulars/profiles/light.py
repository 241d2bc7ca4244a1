"""Light profiles: what a sale leaves of a customer whose profile has not been pushed yet."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.errors import Unavailable
from regulars.kit.ids import new_uuid
from regulars.profiles import queries
from regulars.profiles.model import ProfileRef, light_profile

RACES_MAX = 5


async def create_light_profiles(tx: Tx, organization_id: UUID, external_ids: Collection[str]) -> dict[str, ProfileRef]:
    """The profiles with these external ids, existing or made now (`is_new`), in creation order as they are given.

    Another transaction may insert one of them between our look and our insert. The insert then waits for it, gives
    nothing back, and the next look finds the winner. That look fails only when the winner was erased meanwhile, so
    more than a round or two never happens.
    """
    missing = list(dict.fromkeys(external_ids))
    known: dict[str, ProfileRef] = {}
    for _ in range(RACES_MAX):
        for profile in await queries.find_profile_refs_by_external_id(tx, organization_id, missing) if missing else ():
            known[profile.external_id] = profile
        missing = [external_id for external_id in missing if external_id not in known]
        if not missing:
            return known
        fresh = [light_profile(external_id, identifier=new_uuid(), now=tx.now) for external_id in missing]
        inserted = await queries.insert_profiles_if_new(tx, organization_id, fresh)
        for profile_made in fresh:
            if profile_made.id in inserted:
                known[profile_made.external_id] = ProfileRef(profile_made.id, profile_made.external_id, is_new=True)
        missing = [external_id for external_id in missing if external_id not in known]
        if not missing:
            return known
    raise Unavailable("The same profiles are being created and erased over and over; try again.")


async def remove_light_profiles(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    """Take back light profiles that this transaction made and no sale came to use; nobody else has seen them."""
    if ids:
        await queries.delete_profiles(tx, organization_id, sorted(set(ids)))
