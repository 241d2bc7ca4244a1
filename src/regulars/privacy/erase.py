"""Erase people: what is personal goes, sales stay without a name, and a withdrawn consent stays withdrawn."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import msgspec

from regulars.catalog.counts.ask import forget_values
from regulars.consent.erase import erase_consent
from regulars.consent.numbers.gate import find_number_hashes
from regulars.journeys.kept.forget import erase_runs
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, ById, Reference
from regulars.messaging.erase import erase_texts
from regulars.messaging.erase import forget_changes as forget_text_changes
from regulars.privacy import queries
from regulars.privacy.answers import read_answers
from regulars.privacy.erasure_log import Erasure, ErasureLog
from regulars.privacy.facts import ProfileErased
from regulars.profiles.erase import delete_profiles, lock_profiles_to_erase
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.model import Profile
from regulars.request_log.erase import erase_entries
from regulars.sales.anonymise import anonymise_sales
from regulars.webhooks.erase import erase_messages
from regulars.work import outbox

# Twice the longest time that a statement may run.
STRAGGLERS_AFTER = timedelta(minutes=1)
# Enough for some 500,000 stored answers a day. Others wait for the profiles meanwhile, and give up after 1.5 s.
READ_ANSWERS_S_MAX = 1.0


class Erased(msgspec.Struct, frozen=True):
    profile_id: UUID


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
        hashes = await _erase(tx, organization_id, list(erased.values()), secret=secret)
        erasures = [Erasure(organization_id, identifier, tuple(hashes), tx.now) for identifier in erased]
        for erasure in erasures:
            await queries.insert_erasure_if_new(tx, organization_id, erasure)
        if log is not None:
            await log.append(tx, erasures)
            failpoint.hit("erasure.logged", tx.connection.cut_off)
    return outcomes


async def replay_erasure(tx: Tx, erasure: Erasure, *, secret: bytes) -> bool:
    """Erase again somebody whom a restored backup brought back, as of when they were erased.

    Consent that was given after the erasure therefore counts. False if the backup had the erasure already. The person
    may be missing from the backup, while their numbers are known to it.
    """
    organization_id = erasure.organization_id
    if await queries.is_erased(tx, organization_id, erasure.profile_id):
        return False
    then = replace(tx, now=erasure.erased_at)
    found = await lock_profiles_to_erase(tx, organization_id, [ById(erasure.profile_id)])
    if found:
        await _erase(then, organization_id, list(found.values()), secret=secret, also=erasure.number_hashes)
    else:
        await erase_consent(then, organization_id, {}, secret=secret, also=erasure.number_hashes)
    await queries.insert_erasure_if_new(tx, organization_id, erasure)
    return True


async def _erase(
    tx: Tx, organization_id: UUID, profiles: Sequence[Profile], *, secret: bytes, also: Sequence[bytes] = ()
) -> list[bytes]:
    """The hashes of the numbers that are not to be contacted from now on; `also` are numbers known to be theirs."""
    numbers = {profile.id: profile.phone_number for profile in profiles}
    forgotten = await erase_consent(tx, organization_id, numbers, secret=secret, also=also)
    ids = list(numbers)
    hashes = await find_number_hashes(tx, organization_id, forgotten)
    # What waits to be told comes before runs and texts: listeners hold such facts while they look for runs.
    await delete_profiles(tx, organization_id, profiles)
    await forget_text_changes(tx, organization_id, profile_ids=ids, number_hashes=hashes)
    await erase_runs(tx, organization_id, ids)
    await erase_texts(tx, organization_id, profile_ids=ids, number_hashes=hashes)
    names = [name for profile in profiles for name in (profile.external_id, PROFILE.encode(profile.id))]
    await anonymise_sales(tx, organization_id, ids, references=names)
    # After their waiting facts: what listeners were making of them is there by now.
    await erase_messages(tx, organization_id, profile_ids=ids, subscription_ids=forgotten)
    await erase_entries(tx, organization_id, ids)
    await forget_values(tx, organization_id)
    facts = [ProfileErased(identifier, tx.now) for identifier in ids]
    await outbox.record(tx, organization_id, facts, due_at=tx.now + STRAGGLERS_AFTER)
    await read_answers(tx, organization_id, ids, forgotten, seconds_max=READ_ANSWERS_S_MAX)
    return hashes
