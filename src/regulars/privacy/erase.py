"""Erase people: delete their personal data, keep their sales without a customer, and keep their numbers on the
do-not-contact list."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from regulars.idempotency.records import erase_bodies
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, SUBSCRIPTION, ById, Reference
from regulars.privacy import queries
from regulars.privacy.erasure_log import Erasure, ErasureLog
from regulars.privacy.facts import ProfileErased, StoredResponsesRemain
from regulars.privacy.personal import MODULES
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.model import Profile
from regulars.profiles.personal import lock_profiles_to_erase
from regulars.work import outbox
from regulars.work.personal import ErasedPeople

# How long after an erasure the worker searches for rows that were written while it ran: twice the longest time that a
# statement may run.
STRAGGLERS_AFTER = timedelta(minutes=1)
# How long an erasure searches stored responses: enough for about 500,000. Other writers of the profile wait meanwhile,
# but give up after 1.5 s.
ERASE_RESPONSES_S_MAX = 1.0


class ErasedProfile(msgspec.Struct, frozen=True):
    profile_id: UUID
    # The keyed hashes of all phone numbers whose consent the batch withdrew.
    number_hashes: tuple[bytes, ...] = ()


async def erase_profiles(
    tx: Tx, organization_id: UUID, references: Sequence[Reference], *, secret: bytes, log: ErasureLog | None = None
) -> list[ErasedProfile | ProfileNotFound]:
    """Erase the profiles in the order of the references; a profile that is named twice is not found the second time.

    The erasures are appended to the log file of this server, outside the database, as the last step before the commit.

    The profiles are locked before anything is searched: a transaction that wrote about one of them has committed by
    then, and a later transaction no longer finds the profile. The API responses of the last 24 hours, which are stored
    for retries, are searched last, newest first, for about a second; the worker searches the remaining ones.
    """
    profiles = await lock_profiles_to_erase(tx, organization_id, references)
    outcomes: list[ErasedProfile | ProfileNotFound] = []
    erased: dict[UUID, Profile] = {}
    for reference in references:
        profile = profiles.get(reference)
        if profile is None or profile.id in erased:
            outcomes.append(ProfileNotFound("No profile has this id or external_id."))
        else:
            erased[profile.id] = profile
            outcomes.append(ErasedProfile(profile.id))
    if erased:
        people = _describe_people(list(erased.values()), secret=secret)
        await _erase(tx, organization_id, people)
        hashes = tuple(people.number_hashes)
        erasures = [Erasure(organization_id, identifier, hashes, tx.now) for identifier in erased]
        for erasure in erasures:
            await queries.insert_erasure_if_new(tx, organization_id, erasure)
        if log is not None:
            await log.append(tx, erasures)
            failpoint.hit("erasure.logged", tx.connection.drop_connection)
        outcomes = [
            ErasedProfile(outcome.profile_id, hashes) if isinstance(outcome, ErasedProfile) else outcome
            for outcome in outcomes
        ]
    return outcomes


async def replay_erasure(tx: Tx, erasure: Erasure, *, secret: bytes) -> bool:
    """Erase again a person whom a restored backup brought back, with the time of the first erasure, so that a consent
    given after it stays valid.

    Returns False if the backup already has the erasure. The backup may have the person's phone numbers without the
    profile.
    """
    organization_id = erasure.organization_id
    if await queries.is_erased(tx, organization_id, erasure.profile_id):
        return False
    tx_at_erasure = replace(tx, now=erasure.erased_at)
    profiles = await lock_profiles_to_erase(tx, organization_id, [ById(erasure.profile_id)])
    people = _describe_people(list(profiles.values()), secret=secret)
    people.profile_ids = [erasure.profile_id]
    people.number_hashes = list(erasure.number_hashes)
    await _erase(tx_at_erasure, organization_id, people)
    await queries.insert_erasure_if_new(tx, organization_id, erasure)
    return True


def _describe_people(profiles: Sequence[Profile], *, secret: bytes) -> ErasedPeople:
    """The values by which the modules find the rows of these people; `secret` is the key of number hashes."""
    return ErasedPeople(
        profile_ids=[profile.id for profile in profiles],
        secret=secret,
        numbers={profile.id: profile.phone_number for profile in profiles},
        references=[name for profile in profiles for name in (profile.external_id, PROFILE.encode(profile.id))],
        names=[name for profile in profiles for name in (profile.first_name, profile.last_name) if name],
        attributes=[attribute for profile in profiles for attribute in profile.attributes.items()],
    )


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Erase the people from all modules. The modules add to `people` the phone numbers that must not be contacted any
    more."""
    for module in MODULES.values():
        if module.erase is not None:
            await module.erase(tx, organization_id, people)
    facts = [ProfileErased(identifier, tx.now) for identifier in people.profile_ids]
    await outbox.record(tx, organization_id, facts, due_at=tx.now + STRAGGLERS_AFTER)
    await erase_responses(
        tx, organization_id, people.profile_ids, people.subscription_ids, seconds_max=ERASE_RESPONSES_S_MAX
    )


def search_keys_of(profile_ids: Collection[UUID], subscription_ids: Collection[UUID] = ()) -> list[bytes]:
    """The ids to search for in stored responses: a response that contains an id is about the person with this id.

    Each response with a profile's external_id or fields also has its canonical id, and each one with the number of a
    consent also has the id of the subscription. The personal values themselves are not searched, for three reasons: an
    external_id such as `"1"` would erase responses about a store or a line item, a phone number that two profiles share
    would erase responses about the other profile, and the values would have to be stored in the outbox for the worker.
    """
    profiles = [PROFILE.encode(identifier).encode() for identifier in profile_ids]
    return profiles + [SUBSCRIPTION.encode(identifier).encode() for identifier in subscription_ids]


async def erase_responses(
    tx: Tx,
    organization_id: UUID,
    profile_ids: Collection[UUID],
    subscription_ids: Collection[UUID],
    *,
    until: datetime | None = None,
    seconds_max: float,
) -> None:
    """Erase the API responses about these people that are stored for retries, newest first, up to the time
    `until`. After `seconds_max`, the worker continues."""
    keys = search_keys_of(profile_ids, subscription_ids)
    unread_until = await erase_bodies(tx, organization_id, keys, until=until, seconds_max=seconds_max)
    if unread_until is not None:
        fact = StoredResponsesRemain(
            until=unread_until, profile_ids=tuple(profile_ids), subscription_ids=tuple(subscription_ids)
        )
        await outbox.record(tx, organization_id, [fact])
