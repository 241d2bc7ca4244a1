"""Declare the personal data of profiles, which is every field, and erase profiles."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import msgspec

from regulars.kit.db import Tx
from regulars.kit.ids import ById, Reference
from regulars.profiles import queries
from regulars.profiles.facts import ProfilesChanged, publish_changes
from regulars.profiles.model import Profile
from regulars.work.outbox import rewrite_waiting_facts
from regulars.work.personal import ErasedPeople, PersonalData


async def lock_profiles_to_erase(
    tx: Tx, organization_id: UUID, references: Collection[Reference]
) -> dict[Reference, Profile]:
    """Lock the profiles that the references name, so that no other transaction can refer to them until this one
    ends."""
    return await queries.PROFILES.lock(tx, organization_id, references, mode="UPDATE")


async def delete_profiles(tx: Tx, organization_id: UUID, profiles: Sequence[Profile]) -> None:
    """Delete the profiles, and the facts (events for listeners) about them that no listener has handled yet; publish
    the deletion with the two ids only."""
    ids = [profile.id for profile in profiles]
    await queries.delete_profiles(tx, organization_id, sorted(ids))
    await erase_waiting_changes(tx, organization_id, ids)
    await publish_changes(tx, organization_id, [(profile, "deleted") for profile in profiles])


async def erase_waiting_changes(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    """Remove the profiles from facts that no listener has handled yet, except from the facts of their deletion."""
    erased = set(ids)

    def without_erased(fact: ProfilesChanged) -> ProfilesChanged | None:
        remaining = tuple(change for change in fact.changes if change.id not in erased or change.change == "deleted")
        return msgspec.structs.replace(fact, changes=remaining) if remaining else None

    await rewrite_waiting_facts(tx, organization_id, ProfilesChanged, erased, without_erased)


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    locked = await lock_profiles_to_erase(tx, organization_id, [ById(identifier) for identifier in people.profile_ids])
    await delete_profiles(tx, organization_id, list(locked.values()))


async def _erase_late_rows(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Erase facts that other transactions recorded while the erasure ran."""
    await erase_waiting_changes(tx, organization_id, people.profile_ids)


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "profiles.external_id",
        "profiles.phone_number",
        "profiles.first_name",
        "profiles.last_name",
        "profiles.attributes",
    ),
    erase=_erase,
    erase_late_rows=_erase_late_rows,
)
