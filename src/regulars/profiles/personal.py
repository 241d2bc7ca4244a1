"""What profiles hold about people: everything."""

from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import ById
from regulars.profiles.erase import delete_profiles, forget_changes, lock_profiles_to_erase
from regulars.work.personal import ErasedPeople, PersonalData


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    found = await lock_profiles_to_erase(tx, organization_id, [ById(identifier) for identifier in people.profile_ids])
    await delete_profiles(tx, organization_id, list(found.values()))


async def _erase_stragglers(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    await forget_changes(tx, organization_id, people.profile_ids)


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "profiles.external_id",
        "profiles.phone_number",
        "profiles.first_name",
        "profiles.last_name",
        "profiles.attributes",
    ),
    erase=_erase,
    erase_stragglers=_erase_stragglers,
)
