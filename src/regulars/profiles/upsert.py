"""Upsert profiles by their caller's id: a list in, a list out, in the same order."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from regulars.catalog.entries import register_attributes
from regulars.kit.db import Tx
from regulars.kit.errors import ValidationError
from regulars.kit.ids import new_uuid
from regulars.kit.upserts import upsert_with_retries
from regulars.profiles import queries
from regulars.profiles.facts import Change
from regulars.profiles.model import Profile, ProfileUpsert, apply, begin
from regulars.profiles.tell import tell_changed


class Upserted(msgspec.Struct, frozen=True):
    """The profile as it stood after this upsert, which need not be the last of its batch."""

    profile: Profile
    change: Literal["created", "updated", "unchanged"]


Outcome = Upserted | ValidationError


async def upsert_profiles(tx: Tx, organization_id: UUID, upserts: Sequence[ProfileUpsert]) -> list[Outcome]:
    """Apply the upserts in their order; several may name the same profile. A refused one changes nothing.

    Existing profiles are locked and folded, and only changed ones written. A profile that is not there is folded from
    nothing and inserted complete. Should another transaction insert it first, our insert waits, gives nothing back,
    and the next round folds the same upserts onto the winner's row.
    """
    outcomes = await upsert_with_retries(
        upserts, lambda upsert: upsert.external_id, lambda waiting: _settle(tx, organization_id, waiting)
    )
    await register_attributes(tx, organization_id, first_values(zip(upserts, outcomes, strict=True)))
    await tell_changed(tx, organization_id, _changes(outcomes))
    return outcomes


def _changes(outcomes: Iterable[Outcome]) -> list[tuple[Profile, Change]]:
    return [
        (outcome.profile, outcome.change)
        for outcome in outcomes
        if isinstance(outcome, Upserted) and outcome.change != "unchanged"
    ]


async def _settle(tx: Tx, organization_id: UUID, upserts: dict[str, list[ProfileUpsert]]) -> dict[str, list[Outcome]]:
    """One round over the profiles by external id; those that lost a race are left out of the answer."""
    locked = await queries.lock_profiles_to_change(tx, organization_id, ids=(), external_ids=sorted(upserts))
    stored = {profile.external_id: profile for profile in locked}
    settled: dict[str, list[Outcome]] = {}
    created: list[Profile] = []
    changed: list[Profile] = []
    for external_id, in_order in upserts.items():
        before = stored.get(external_id)
        after, settled[external_id] = _fold(before, in_order, now=tx.now)
        if after is not None and before is None:
            created.append(after)
        elif after is not None and after is not before:
            changed.append(after)
    if changed:
        await queries.update_profiles(tx, organization_id, changed)
    if created:
        inserted = await queries.insert_profiles_if_new(tx, organization_id, created)
        for profile in created:
            if profile.id not in inserted:
                del settled[profile.external_id]
    return settled


def _fold(
    profile: Profile | None, upserts: Sequence[ProfileUpsert], *, now: datetime
) -> tuple[Profile | None, list[Outcome]]:
    """What is left in the end, and what each upsert is answered."""
    outcomes: list[Outcome] = []
    for upsert in upserts:
        try:
            if profile is None:
                profile = begin(upsert, identifier=new_uuid(), now=now)
                outcomes.append(Upserted(profile, "created"))
            else:
                before, profile = profile, apply(upsert, profile, now=now)
                outcomes.append(Upserted(profile, "unchanged" if profile is before else "updated"))
        except ValidationError as error:
            outcomes.append(error)
    return profile, outcomes


def first_values(applied: Iterable[tuple[ProfileUpsert, Outcome]]) -> dict[str, str]:
    """The first value that each key was given by an upsert that changed something; the others bring no new key."""
    values: dict[str, str] = {}
    for upsert, outcome in applied:
        if isinstance(outcome, Upserted) and outcome.change != "unchanged":
            for key, value in upsert.attributes.items():
                if value is not None:
                    values.setdefault(key, value)
    return values
