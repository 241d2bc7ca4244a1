"""Check which phone numbers and profiles may be texted, for `POST /v1/subscriptions/check`; nothing is written."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from regulars.consent import chain, queries
from regulars.consent.find import subscription_from_row
from regulars.consent.model import Reason, Status
from regulars.consent.subscription import Subscription
from regulars.kit.db import Tx
from regulars.kit.ids import Reference
from regulars.profiles.find import find_profiles
from regulars.profiles.model import ProfileRef


class CheckItem(NamedTuple):
    """A number in E.164 or a profile to check; both are None if the number of the request is invalid."""

    phone_number: str | None = None
    profile: Reference | None = None


class CheckRequest(NamedTuple):
    items: Sequence[CheckItem]
    # The unknown fields of the request body.
    ignored: tuple[str, ...] = ()


class ConsentVerdict(NamedTuple):
    """Why a number or a profile may be texted or not: only the reason SUBSCRIBED allows a text."""

    reason: Reason
    phone_number: str | None = None
    profile: ProfileRef | None = None
    # The subscription that decided the reason; None if there is none.
    subscription: Subscription | None = None


# Finds the number hashes from which a reply arrived that may be a STOP and that no user has decided about. It is a
# parameter, because `inbox`, which stores replies, imports this package.
FindSuppressed = Callable[[Tx, UUID, Collection[bytes]], Awaitable[set[bytes]]]


async def check_consents(
    tx: Tx,
    organization_id: UUID,
    items: Sequence[CheckItem],
    *,
    secret: bytes,
    find_suppressed: FindSuppressed | None = None,
) -> list[ConsentVerdict]:
    """Return a verdict for each item, in order. The verdict on a profile is that of its subscribed number with the
    latest consent, or of the number withdrawn last; the phone number in the profile's own fields does not count."""
    hashes = {
        item.phone_number: chain.hash_number(secret, item.phone_number)
        for item in items
        if item.phone_number is not None
    }
    references = {item.profile for item in items if item.profile is not None}
    profiles = await find_profiles(tx, organization_id, references) if references else {}
    by_number = {
        row.ledger_head.number_hash: subscription_from_row(row)
        for row in (await queries.find_by_hashes(tx, organization_id, hashes.values()) if hashes else ())
    }
    ids = {profile.id for profile in profiles.values()}
    by_profile = {
        row.ledger_head.state.profile_id: subscription_from_row(row)
        for row in (await queries.find_deciding_rows(tx, organization_id, ids) if ids else ())
        if row.ledger_head.state is not None
    }
    verdicts = []
    for item in items:
        if item.phone_number is not None:
            verdicts.append(_judge(by_number.get(hashes[item.phone_number]), phone_number=item.phone_number))
        elif item.profile is None:
            verdicts.append(ConsentVerdict(Reason.INVALID_PHONE_NUMBER))
        elif (profile := profiles.get(item.profile)) is None:
            verdicts.append(ConsentVerdict(Reason.UNKNOWN_PROFILE))
        else:
            verdicts.append(_judge(by_profile.get(profile.id), profile=profile))
    if find_suppressed is None:
        return verdicts
    return await _suppress(tx, organization_id, verdicts, secret, find_suppressed)


async def _suppress(
    tx: Tx, organization_id: UUID, verdicts: list[ConsentVerdict], secret: bytes, find_suppressed: FindSuppressed
) -> list[ConsentVerdict]:
    """Set the reason SUPPRESSED for subscribed numbers with a reply that may be a STOP, until a user decides."""
    hashes = {
        verdict.phone_number: chain.hash_number(secret, verdict.phone_number)
        for verdict in verdicts
        if verdict.reason is Reason.SUBSCRIBED and verdict.phone_number is not None
    }
    suppressed = await find_suppressed(tx, organization_id, hashes.values()) if hashes else set()
    return [
        verdict._replace(reason=Reason.SUPPRESSED) if hashes.get(verdict.phone_number or "") in suppressed else verdict
        for verdict in verdicts
    ]


def _judge(
    subscription: Subscription | None, *, phone_number: str | None = None, profile: ProfileRef | None = None
) -> ConsentVerdict:
    if subscription is None:
        return ConsentVerdict(Reason.NEVER_ASKED, phone_number, profile)
    state = subscription.state
    withdrawn = Reason.DO_NOT_CONTACT if state.is_erased else Reason.UNSUBSCRIBED
    reason = Reason.SUBSCRIBED if state.status is Status.SUBSCRIBED else withdrawn
    return ConsentVerdict(reason, phone_number or state.phone_number, profile or subscription.profile, subscription)
