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
    # The unknown members of the body they were read from.
    ignored: tuple[str, ...] = ()


class Verdict(NamedTuple):
    reason: Reason
    phone_number: str | None = None
    profile: ProfileRef | None = None
    # The subscription that decided.
    subscription: Subscription | None = None


# Finds the hashes of numbers with a reply that may be a STOP and waits for a user's decision; a room above has them.
FindSuppressed = Callable[[Tx, UUID, Collection[bytes]], Awaitable[set[bytes]]]


async def check(
    tx: Tx,
    organization_id: UUID,
    items: Sequence[CheckItem],
    *,
    secret: bytes,
    suppressed: FindSuppressed | None = None,
) -> list[Verdict]:
    """Check each in order. A profile is decided by its subscribed number that was consented last, else by its latest
    withdrawal; the number on the profile itself does not count."""
    hashes = {
        it.phone_number: chain.hash_number(secret, it.phone_number) for it in items if it.phone_number is not None
    }
    references = {it.profile for it in items if it.profile is not None}
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
    for it in items:
        if it.phone_number is not None:
            verdicts.append(_judge(by_hash.get(hashes[it.phone_number]), phone_number=it.phone_number))
        elif it.profile is None:
            verdicts.append(Verdict(Reason.INVALID_PHONE_NUMBER))
        elif (profile := profiles.get(it.profile)) is None:
            verdicts.append(Verdict(Reason.UNKNOWN_PROFILE))
        else:
            verdicts.append(_judge(by_profile.get(profile.id), profile=profile))
    return verdicts if suppressed is None else await _suppress(tx, organization_id, verdicts, secret, suppressed)


async def _suppress(
    tx: Tx, organization_id: UUID, verdicts: list[Verdict], secret: bytes, suppressed: FindSuppressed
) -> list[Verdict]:
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
) -> Verdict:
    if found is None:
        return Verdict(Reason.NEVER_ASKED, phone_number, profile)
    if found.state.status is Status.SUBSCRIBED:
        reason = Reason.SUBSCRIBED
    else:
        reason = Reason.DO_NOT_CONTACT if found.state.is_erased else Reason.UNSUBSCRIBED
    return Verdict(reason, phone_number or found.state.phone_number, profile or found.profile, found)
