"""Check who may be texted: the use case behind `POST /v1/subscriptions/check`. It writes nothing."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from regulars.consent import chain, queries
from regulars.consent.find import subscription_in
from regulars.consent.model import Reason, Status
from regulars.consent.subscription import Subscription
from regulars.kit.db import Tx
from regulars.kit.ids import Reference
from regulars.profiles.find import find_profiles
from regulars.profiles.model import ProfileRef


class CheckItem(NamedTuple):
    """A number in E.164, or a profile; neither if the number could not be read."""

    phone_number: str | None = None
    profile: Reference | None = None


class CheckRequest(NamedTuple):
    items: Sequence[CheckItem]
    # The unknown fields of the request body.
    ignored: tuple[str, ...] = ()


class ConsentVerdict(NamedTuple):
    reason: Reason
    phone_number: str | None = None
    profile: ProfileRef | None = None
    # The subscription that decided.
    subscription: Subscription | None = None


# Finds which of these number hashes have a reply that may be a STOP and waits for a user's decision. It is passed in,
# because replies are stored by `messaging`, which this module does not import.
FindSuppressed = Callable[[Tx, UUID, Collection[bytes]], Awaitable[set[bytes]]]


async def check(
    tx: Tx,
    organization_id: UUID,
    items: Sequence[CheckItem],
    *,
    secret: bytes,
    suppressed: FindSuppressed | None = None,
) -> list[ConsentVerdict]:
    """Check each item, in order. A profile is decided by its subscribed number with the latest consent, else by its
    latest withdrawal; the phone number in the profile's own fields does not count."""
    hashes = {
        item.phone_number: chain.hash_number(secret, item.phone_number)
        for item in items
        if item.phone_number is not None
    }
    references = {item.profile for item in items if item.profile is not None}
    profiles = await find_profiles(tx, organization_id, references) if references else {}
    by_hash = {
        row.head.number_hash: subscription_in(row)
        for row in (await queries.find_by_numbers(tx, organization_id, hashes.values()) if hashes else ())
    }
    ids = {profile.id for profile in profiles.values()}
    by_profile = {
        row.head.state.profile_id: subscription_in(row)
        for row in (await queries.find_deciding(tx, organization_id, ids) if ids else ())
        if row.head.state is not None
    }
    verdicts = []
    for item in items:
        if item.phone_number is not None:
            verdicts.append(_judge(by_hash.get(hashes[item.phone_number]), phone_number=item.phone_number))
        elif item.profile is None:
            verdicts.append(ConsentVerdict(Reason.INVALID_PHONE_NUMBER))
        elif (profile := profiles.get(item.profile)) is None:
            verdicts.append(ConsentVerdict(Reason.UNKNOWN_PROFILE))
        else:
            verdicts.append(_judge(by_profile.get(profile.id), profile=profile))
    return verdicts if suppressed is None else await _suppress(tx, organization_id, verdicts, secret, suppressed)


async def _suppress(
    tx: Tx, organization_id: UUID, verdicts: list[ConsentVerdict], secret: bytes, suppressed: FindSuppressed
) -> list[ConsentVerdict]:
    """Suppress the subscribed numbers whose reply may be a STOP, until a user has decided about it."""
    hashes = {
        verdict.phone_number: chain.hash_number(secret, verdict.phone_number)
        for verdict in verdicts
        if verdict.reason is Reason.SUBSCRIBED and verdict.phone_number is not None
    }
    waiting = await suppressed(tx, organization_id, hashes.values()) if hashes else set()
    return [
        verdict._replace(reason=Reason.SUPPRESSED) if hashes.get(verdict.phone_number or "") in waiting else verdict
        for verdict in verdicts
    ]


def _judge(
    found: Subscription | None, *, phone_number: str | None = None, profile: ProfileRef | None = None
) -> ConsentVerdict:
    if found is None:
        return ConsentVerdict(Reason.NEVER_ASKED, phone_number, profile)
    if found.state.status is Status.SUBSCRIBED:
        reason = Reason.SUBSCRIBED
    else:
        reason = Reason.DO_NOT_CONTACT if found.state.is_erased else Reason.UNSUBSCRIBED
    return ConsentVerdict(reason, phone_number or found.state.phone_number, profile or found.profile, found)
