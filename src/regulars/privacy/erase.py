"""Erase people: what is personal goes, sales stay without a name, and a withdrawn consent stays withdrawn."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import msgspec

from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, ById, Reference
from regulars.privacy import queries
from regulars.privacy.answers import read_answers
from regulars.privacy.erasure_log import Erasure, ErasureLog
from regulars.privacy.facts import ProfileErased
from regulars.privacy.rooms import ROOMS
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.model import Profile
from regulars.profiles.personal import lock_profiles_to_erase
from regulars.work import outbox
from regulars.work.personal import ErasedPeople

# Twice the longest time that a statement may run.
STRAGGLERS_AFTER = timedelta(minutes=1)
# Enough for some 500,000 stored answers a day. Others wait for the profiles meanwhile, and give up after 1.5 s.
READ_ANSWERS_S_MAX = 1.0


class Erased(msgspec.Struct, frozen=True):
    profile_id: UUID
    # What the numbers that were withdrawn with it are known by, those of the whole batch.
    number_hashes: tuple[bytes, ...] = ()


async def erase_profiles(
    tx: Tx, organization_id: UUID, references: Sequence[Reference], *, secret: bytes, log: ErasureLog | None = None
) -> list[Erased | ProfileNotFound]:
    """Erase the profiles in their order; one that is named twice is not there the second time.

    The erasures are appended to the log of this node, outside the database, as the last step before the commit.

    The profiles are locked before anything is looked for: whoever was writing about one of them has committed by then,
    and whoever comes later no longer finds it. The stored answers of the last 24 hours are read last and for about a
    second, newest first; on a day with more of them than that the worker reads on at once.
    """
    found = await lock_profiles_to_erase(tx, organization_id, references)
    outcomes: list[Erased | ProfileNotFound] = []
    erased: dict[UUID, Profile] = {}
    for reference in references:
        profile = found.get(reference)
        if profile is None or profile.id in erased:
            outcomes.append(ProfileNotFound("No profile has this id or external_id."))
        else:
            erased[profile.id] = profile
            outcomes.append(Erased(profile.id))
    if erased:
        people = _describe(list(erased.values()), secret=secret)
        await _erase(tx, organization_id, people)
        hashes = tuple(people.number_hashes)
        erasures = [Erasure(organization_id, identifier, hashes, tx.now) for identifier in erased]
        for erasure in erasures:
            await queries.insert_erasure_if_new(tx, organization_id, erasure)
        if log is not None:
            await log.append(tx, erasures)
            failpoint.hit("erasure.logged", tx.connection.cut_off)
        outcomes = [Erased(it.profile_id, hashes) if isinstance(it, Erased) else it for it in outcomes]
    return outcomes


async def replay_erasure(tx: Tx, erasure: Erasure, *, secret: bytes) -> bool:
    """Erase again a person whom a restored backup brought back, as of when they were erased.

    Consent that was given after the erasure therefore counts. False if the backup had the erasure already. The person
    may be missing from the backup, while their numbers are known to it.
    """
    organization_id = erasure.organization_id
    if await queries.is_erased(tx, organization_id, erasure.profile_id):
        return False
    then = replace(tx, now=erasure.erased_at)
    found = await lock_profiles_to_erase(tx, organization_id, [ById(erasure.profile_id)])
    people = _describe(list(found.values()), secret=secret)
    people.profile_ids = [erasure.profile_id]
    people.number_hashes = list(erasure.number_hashes)
    await _erase(then, organization_id, people)
    await queries.insert_erasure_if_new(tx, organization_id, erasure)
    return True


def _describe(profiles: Sequence[Profile], *, secret: bytes) -> ErasedPeople:
    return ErasedPeople(
        profile_ids=[profile.id for profile in profiles],
        secret=secret,
        numbers={profile.id: profile.phone_number for profile in profiles},
        references=[name for profile in profiles for name in (profile.external_id, PROFILE.encode(profile.id))],
        names=[name for profile in profiles for name in (profile.first_name, profile.last_name) if name],
        attributes=[attribute for profile in profiles for attribute in profile.attributes.items()],
    )


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Afterwards `people` also has the numbers that are not to be contacted from now on."""
    for room in ROOMS.values():
        if room.erase is not None:
            await room.erase(tx, organization_id, people)
    facts = [ProfileErased(identifier, tx.now) for identifier in people.profile_ids]
    await outbox.record(tx, organization_id, facts, due_at=tx.now + STRAGGLERS_AFTER)
    await read_answers(tx, organization_id, people.profile_ids, people.subscription_ids, seconds_max=READ_ANSWERS_S_MAX)
