"""Write profiles: upsert them under the caller's own id, set attributes, and create light profiles (with only an id)
for sales.

`upsert_profiles` and `set_attributes` take a list and return one outcome for each item, in the same order.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Literal
from uuid import UUID

import msgspec

from regulars.catalog.entries import register_attributes
from regulars.kit.db import Tx
from regulars.kit.errors import Unavailable, ValidationError
from regulars.kit.ids import new_uuid
from regulars.kit.upserts import upsert_rows
from regulars.profiles import queries
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.facts import Change, publish_changes
from regulars.profiles.model import (
    AttributeChanges,
    Profile,
    ProfileRef,
    ProfileUpsert,
    apply,
    light_profile,
    merge,
    new_profile,
    with_updated_at,
)


class UpsertedProfile(msgspec.Struct, frozen=True):
    """The profile right after this upsert; later upserts of the same batch may change it again."""

    profile: Profile
    change: Literal["created", "updated", "unchanged"]


UpsertOutcome = UpsertedProfile | ValidationError


async def upsert_profiles(tx: Tx, organization_id: UUID, upserts: Sequence[ProfileUpsert]) -> list[UpsertOutcome]:
    """Apply the upserts in their order; several may name the same profile. A refused upsert changes nothing."""
    apply_all = partial(_apply_all, now=tx.now)
    outcomes = await upsert_rows(tx, organization_id, queries.PROFILES, upserts, apply_all)
    await register_attributes(tx, organization_id, _first_values(zip(upserts, outcomes, strict=True)))
    await publish_changes(tx, organization_id, _list_changes(outcomes))
    return outcomes


def _list_changes(outcomes: Iterable[UpsertOutcome]) -> list[tuple[Profile, Change]]:
    return [
        (outcome.profile, outcome.change)
        for outcome in outcomes
        if isinstance(outcome, UpsertedProfile) and outcome.change != "unchanged"
    ]


def _apply_all(
    profile: Profile | None, upserts: Sequence[ProfileUpsert], *, now: datetime
) -> tuple[Profile | None, list[UpsertOutcome]]:
    """Return the profile after all upserts, and the outcome of each."""
    outcomes: list[UpsertOutcome] = []
    for upsert in upserts:
        try:
            if profile is None:
                profile = new_profile(upsert, identifier=new_uuid(), now=now)
                outcomes.append(UpsertedProfile(profile, "created"))
            else:
                before, profile = profile, apply(upsert, profile, now=now)
                outcomes.append(UpsertedProfile(profile, "unchanged" if profile is before else "updated"))
        except ValidationError as error:
            outcomes.append(error)
    return profile, outcomes


def _first_values(upserts_and_outcomes: Iterable[tuple[ProfileUpsert, UpsertOutcome]]) -> dict[str, str]:
    """Return the first value of each attribute key. Upserts that changed nothing are skipped, because they have no new
    key."""
    values: dict[str, str] = {}
    for upsert, outcome in upserts_and_outcomes:
        if isinstance(outcome, UpsertedProfile) and outcome.change != "unchanged":
            for key, value in upsert.attributes.items():
                if value is not None:
                    values.setdefault(key, value)
    return values


AttributesOutcome = Profile | ProfileNotFound | ValidationError


async def set_attributes(tx: Tx, organization_id: UUID, changes: Sequence[AttributeChanges]) -> list[AttributesOutcome]:
    """Apply the changes in order, to profiles that exist; returns for each the profile right after it."""
    locked = await queries.PROFILES.lock(tx, organization_id, [change.reference for change in changes])
    stored = {profile.id: profile for profile in locked.values()}
    current = dict(stored)
    first_values: dict[str, str] = {}
    outcomes: list[AttributesOutcome] = []
    updates: list[Profile] = []
    for change in changes:
        if change.reference not in locked:
            outcomes.append(ProfileNotFound("No profile has this id or external_id."))
            continue
        profile = current[locked[change.reference].id]
        try:
            merged = merge(profile.attributes, change.changes)
        except ValidationError as error:
            outcomes.append(error)
            continue
        if merged != profile.attributes:
            profile = with_updated_at(msgspec.structs.replace(profile, attributes=merged), now=tx.now)
            current[profile.id] = profile
            updates.append(profile)
            for key in change.changes.keys() & merged.keys():
                first_values.setdefault(key, merged[key])
        outcomes.append(profile)
    changed = [profile for profile in current.values() if profile is not stored[profile.id]]
    if changed:
        await queries.PROFILES.update(tx, organization_id, changed)
    await register_attributes(tx, organization_id, first_values)
    await publish_changes(tx, organization_id, [(profile, "updated") for profile in updates])
    return outcomes


# Attempts to create a light profile while other transactions create and erase the same profile.
CREATE_ATTEMPTS_MAX = 5


async def create_light_profiles(tx: Tx, organization_id: UUID, external_ids: Collection[str]) -> dict[str, ProfileRef]:
    """Find the profiles with these external ids, and create light profiles for the missing ones (`is_new`).

    Another transaction may insert one of them between our select and our insert. The insert then waits and returns
    nothing, and the next select finds that row, unless it was erased meanwhile. More than two attempts are rare.
    """
    missing = list(dict.fromkeys(external_ids))
    refs: dict[str, ProfileRef] = {}
    for _ in range(CREATE_ATTEMPTS_MAX):
        for profile in await queries.REFS.find_by_external_ids(tx, organization_id, missing):
            refs[profile.external_id] = profile
        missing = [external_id for external_id in missing if external_id not in refs]
        if not missing:
            return refs
        candidates = [light_profile(external_id, identifier=new_uuid(), now=tx.now) for external_id in missing]
        inserted = await queries.PROFILES.insert_if_new(tx, organization_id, candidates)
        for created in candidates:
            if created.id in inserted:
                refs[created.external_id] = ProfileRef(created.id, created.external_id, is_new=True)
        missing = [external_id for external_id in missing if external_id not in refs]
        if not missing:
            return refs
    raise Unavailable("The same profiles are being created and erased repeatedly; try again.")


async def remove_light_profiles(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    """Delete light profiles that this transaction created and that no sale uses. No other transaction can refer to
    them, because they are not committed."""
    if ids:
        await queries.delete_profiles(tx, organization_id, sorted(set(ids)))
