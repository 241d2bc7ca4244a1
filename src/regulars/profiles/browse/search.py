"""Search for customers by the beginning of a name, by any id, or by a number; and walk through all of them."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, ById, read_reference
from regulars.kit.keyset import PageRequest, PageRows, Position
from regulars.profiles.browse import queries
from regulars.profiles.find import find_profile
from regulars.profiles.model import Profile, read_phone
from regulars.profiles.queries import find_profiles_by_id

# A number that more profiles share is a switchboard, and no way to find a person.
SAME_NUMBER_MAX: Final = 50
# So many customers of one name are offered to choose from.
CANDIDATES_MAX: Final = 8


class Hit(NamedTuple):
    """A customer in a list, and the position to go on from."""

    profile: Profile
    position: Position


async def search_exactly(
    tx: Tx, organization_id: UUID, text: str, *, default_country: str | None, sees_personal: bool
) -> list[Profile]:
    """Whom an id means, or whose number it is; whoever sees no personal data finds by canonical id alone."""
    reference = read_reference(PROFILE, text)
    if not isinstance(reference, ById) and (not sees_personal or "\0" in text):
        return []
    profile = await find_profile(tx, organization_id, reference)
    if profile is not None:
        return [profile]
    if isinstance(reference, ById):
        return []
    phone = read_phone(text, default_country=default_country)
    return await queries.list_profiles_by_number(tx, organization_id, phone.number, limit=SAME_NUMBER_MAX)


async def search_by_name(tx: Tx, organization_id: UUID, text: str, page: PageRequest) -> PageRows[Hit]:
    """Customers whose names begin so, accents and case aside, in alphabetical order."""
    beginning = "" if "\0" in text else await queries.fold_name(tx, text)
    if not beginning:
        return PageRows()
    found = await queries.list_profiles_by_name(tx, organization_id, beginning, page)
    return PageRows(Hit(profile, (folded, str(profile.id))) for folded, profile in found)


async def find_candidates(
    tx: Tx, organization_id: UUID, text: str, *, default_country: str | None, sees_personal: bool
) -> list[Profile]:
    """Whom a user may mean who looks for one customer: by an id or a number, else by the beginning of a name."""
    if not text:
        return []
    found = await search_exactly(
        tx, organization_id, text, default_country=default_country, sees_personal=sees_personal
    )
    if not found and sees_personal:
        page = PageRequest(limit=CANDIDATES_MAX)
        found = [hit.profile for hit in await search_by_name(tx, organization_id, text, page)]
    return found[:CANDIDATES_MAX]


async def find_by_ids(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[Profile]:
    """Those that exist, in no order."""
    return await find_profiles_by_id(tx, organization_id, ids) if ids else []


async def list_newest(tx: Tx, organization_id: UUID, page: PageRequest) -> PageRows[Hit]:
    """All customers, the newest first."""
    found = await queries.list_profiles_by_age(tx, organization_id, page)
    return PageRows(Hit(profile, (str(profile.id),)) for profile in found)


async def count_profiles(tx: Tx, organization_id: UUID, *, most: int) -> int:
    """How many customers there are, counted up to `most`."""
    return await queries.count_profiles(tx, organization_id, most=most)
