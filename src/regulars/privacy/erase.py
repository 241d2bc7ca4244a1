"""Erase people: what is personal goes, sales stay without a name, and a withdrawn consent stays withdrawn."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from regulars.consent.erase import erase_consent
from regulars.idempotency.erase import erase_answers
from regulars.kit.db import Tx
from regulars.kit.errors import ProfileNotFound
from regulars.kit.ids import PROFILE, Reference
from regulars.kit.json import encode
from regulars.privacy.facts import ProfileErased
from regulars.profiles.erase import delete_profiles, lock_profiles_to_erase
from regulars.profiles.model import Profile
from regulars.sales.anonymise import anonymise_sales
from regulars.work import outbox

# Twice the longest time that a statement may run.
STRAGGLERS_AFTER = timedelta(minutes=1)


class Erased(msgspec.Struct, frozen=True):
    profile_id: UUID


async def erase_profiles(
    tx: Tx, organization_id: UUID, references: Sequence[Reference], *, secret: bytes
) -> list[Erased | ProfileNotFound]:
    """Erase the profiles in their order; one that is named twice is not there the second time.

    The profiles are locked before anything is looked for: whoever was writing about one of them has committed by then,
    and whoever comes later no longer finds it.
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
        await _erase(tx, organization_id, list(erased.values()), secret=secret)
    return outcomes


async def _erase(tx: Tx, organization_id: UUID, profiles: Sequence[Profile], *, secret: bytes) -> None:
    for profile in sorted(profiles, key=lambda profile: profile.id):
        await erase_consent(
            tx, organization_id, secret=secret, profile_id=profile.id, phone_number=profile.phone_number
        )
    ids = [profile.id for profile in profiles]
    names = [name for profile in profiles for name in (profile.external_id, PROFILE.encode(profile.id))]
    await anonymise_sales(tx, organization_id, ids, references=names)
    await delete_profiles(tx, organization_id, ids)
    facts = [ProfileErased(identifier) for identifier in ids]
    await outbox.record(tx, organization_id, facts, not_before=tx.now + STRAGGLERS_AFTER)
    await erase_answers(tx, organization_id, [needle for profile in profiles for needle in _needles(profile)])


def _needles(profile: Profile) -> list[bytes]:
    """What gives away, in the bytes of a stored answer, that it speaks of this person.

    Every answer that shows a profile's external_id shows its canonical id beside it, and that is unique. The
    external_id itself is no needle: as a bare text such as `"1"` it would blank the answers of a store or a line.
    """
    needles = [PROFILE.encode(profile.id).encode()]
    if profile.phone_number is not None:
        needles.append(b'"phone_number":' + encode(profile.phone_number))
    return needles
