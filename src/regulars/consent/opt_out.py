"""Record a list of withdrawals of consent, for `POST /v1/subscriptions/opt-out`, imports and STOP replies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from regulars.consent import chain, queries
from regulars.consent.errors import SubscriptionNotFound
from regulars.consent.ledger import AppendedEvent, EventDetails, EventOrigin, Ledger, reserve_ledger
from regulars.consent.model import CLAIM_AHEAD_MAX, OptOut, Outcome
from regulars.consent.phone import read_if_number
from regulars.consent.subscription import Subscription, find_external_ids, make_subscription
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, invalid
from regulars.kit.ids import Reference
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.find import find_profiles, lock_profiles
from regulars.profiles.model import ProfileRef

_EARLIEST_TIME = datetime.min.replace(tzinfo=UTC)
# The outcome of a withdrawal of several numbers is the first outcome in this list that any of the numbers has.
_OUTCOME_PRECEDENCE = (Outcome.UNSUBSCRIBED, Outcome.ALREADY_UNSUBSCRIBED, Outcome.SUPERSEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """An opt-out as a caller states it, by number (E.164), by profile, or by both."""

    origin: EventOrigin
    phone_number: str | None = None
    profile: Reference | None = None
    unsubscribed_at: datetime | None = None
    reason: str | None = None
    source: str | None = None
    # The body of the text message by which the person withdrew.
    message: str | None = None
    # The unknown fields of the request body.
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OptOutResult:
    """`subscription` is the one with the latest consent among `subscriptions`."""

    subscription: Subscription
    subscriptions: tuple[Subscription, ...]
    outcome: Outcome
    # The numbers of `subscriptions`; a hash remains stored after its number is erased.
    number_hashes: tuple[bytes, ...]


async def opt_out(
    tx: Tx, organization_id: UUID, withdrawals: Sequence[Withdrawal], *, secret: bytes
) -> list[OptOutResult | ApiError]:
    """Record the withdrawals in order; returns for each withdrawal its subscriptions right after it."""
    references = await _References.load(tx, organization_id, withdrawals)
    targets = [_target_of(withdrawal, references, now=tx.now, secret=secret) for withdrawal in withdrawals]
    accepted = [target for target in targets if isinstance(target, _Target)]
    ledger = await reserve_ledger(
        tx,
        organization_id,
        new=[number_hash for target in accepted for number_hash in target.new],
        known={number_hash for target in accepted for number_hash in target.linked},
    )
    positions = [
        _withdraw(ledger, withdrawal, target, now=tx.now) if isinstance(target, _Target) else target
        for withdrawal, target in zip(withdrawals, targets, strict=True)
    ]
    entries = await ledger.write()
    states = [entry.state for entry in entries]
    external_ids = await find_external_ids(tx, organization_id, states, references.external_ids)
    return [
        appended
        if isinstance(appended, ApiError)
        else _result(withdrawal, [entries[position] for position in appended], external_ids)
        for withdrawal, appended in zip(withdrawals, positions, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _References:
    """The profiles that a batch names, which are locked, and their numbers, which are not locked yet."""

    profiles: Mapping[Reference, ProfileRef] = field(default_factory=dict)
    # By profile: the phone number in the profile's own fields.
    own_numbers: Mapping[UUID, str] = field(default_factory=dict)
    # By profile: the hashes of the numbers whose subscription is linked to it.
    linked: Mapping[UUID, list[bytes]] = field(default_factory=dict)

    @classmethod
    async def load(cls, tx: Tx, organization_id: UUID, withdrawals: Sequence[Withdrawal]) -> "_References":
        references = {withdrawal.profile for withdrawal in withdrawals if withdrawal.profile is not None}
        if not references:
            return cls()
        named = await find_profiles(tx, organization_id, references)
        existing = await lock_profiles(tx, organization_id, {profile.id for profile in named.values()})
        numbers = await tx.fetch(
            """
            SELECT found.id, found.phone_number
            FROM unnest(%s::uuid[]) AS wanted (id)
            CROSS JOIN LATERAL (
                SELECT id, phone_number FROM profiles
                WHERE organization_id = %s AND id = wanted.id AND phone_number IS NOT NULL AND phone_reachable
                LIMIT 1
            ) AS found
            """,
            (list(existing), organization_id),
        )
        return cls(
            profiles={reference: profile for reference, profile in named.items() if profile.id in existing},
            own_numbers={profile_id: number for profile_id, text in numbers if (number := read_if_number(text))},
            linked=await queries.find_linked_hashes(tx, organization_id, existing),
        )

    @property
    def external_ids(self) -> dict[UUID, str]:
        return {profile.id: profile.external_id for profile in self.profiles.values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The numbers that a withdrawal is for, by hash. `new` numbers, which may have no subscription yet, get a ledger
    entry in any case; `linked` numbers only if they are still linked to the profile when they are locked."""

    profile_id: UUID | None = None
    new: Mapping[bytes, str] = field(default_factory=dict)
    linked: Sequence[bytes] = ()


def _target_of(withdrawal: Withdrawal, references: _References, *, now: datetime, secret: bytes) -> _Target | ApiError:
    if withdrawal.unsubscribed_at is not None and withdrawal.unsubscribed_at > now + CLAIM_AHEAD_MAX:
        return invalid("unsubscribed_at", "IN_FUTURE", "It lies more than five minutes ahead of the service's clock.")
    number = withdrawal.phone_number
    if withdrawal.profile is None:
        if number is None:
            return invalid("phone_number", "REQUIRED", "Either phone_number or profile_id is required.")
        return _Target(new={chain.hash_number(secret, number): number})
    profile = references.profiles.get(withdrawal.profile)
    if profile is None:
        return ProfileNotFound("profile_id names no profile of this organization.")
    linked = references.linked.get(profile.id, [])
    own_number = references.own_numbers.get(profile.id)
    if number is not None:
        number_hash = chain.hash_number(secret, number)
        if number_hash in linked:
            return _Target(profile_id=profile.id, linked=(number_hash,))
        return _Target(profile_id=profile.id, new={number_hash: number}) if number == own_number else _not_linked()
    if linked:
        return _Target(profile_id=profile.id, linked=tuple(linked))
    if own_number is None:
        return _no_number()
    return _Target(profile_id=profile.id, new={chain.hash_number(secret, own_number): own_number})


def _withdraw(ledger: Ledger, withdrawal: Withdrawal, target: _Target, *, now: datetime) -> list[int] | ApiError:
    """Append the withdrawal to the ledger of each number; returns the positions of its entries in the batch."""
    # A withdrawal that names both a number and a profile does not withdraw a number that is linked to another profile.
    names_both = withdrawal.phone_number is not None and target.profile_id is not None
    if names_both and any(ledger.linked_profile(key) not in (None, target.profile_id) for key in target.new):
        return _not_linked()
    numbers: dict[bytes, str | None] = dict(target.new)
    for number_hash in target.linked:
        state = ledger.state(number_hash)
        # Between the look-up and the lock the number may have been linked to another profile.
        if state is not None and state.profile_id == target.profile_id:
            numbers[number_hash] = state.phone_number
    if not numbers:
        return _no_number() if withdrawal.phone_number is None else _not_linked()
    details = EventDetails(
        origin=withdrawal.origin, reason=withdrawal.reason, source=withdrawal.source, message=withdrawal.message
    )
    return [
        ledger.append(
            number_hash,
            OptOut(
                phone_number=number,
                claimed_at=withdrawal.unsubscribed_at,
                received_at=now,
                profile_id=target.profile_id,
            ),
            details,
        )
        for number_hash, number in numbers.items()
    ]


def _result(withdrawal: Withdrawal, entries: Sequence[AppendedEvent], external_ids: Mapping[UUID, str]) -> OptOutResult:
    subscriptions = []
    for entry in entries:
        # An entry of an erased number does not store the number, but the caller sent it, so the response contains it.
        state = replace(entry.state, phone_number=entry.state.phone_number or withdrawal.phone_number)
        subscriptions.append(make_subscription(entry.ledger_head, state, external_ids))
    return OptOutResult(
        subscription=max(
            subscriptions,
            key=lambda subscription: (subscription.state.latest_opt_in_at or _EARLIEST_TIME, subscription.id),
        ),
        subscriptions=tuple(subscriptions),
        outcome=min((entry.outcome for entry in entries), key=_OUTCOME_PRECEDENCE.index),
        number_hashes=tuple(entry.ledger_head.number_hash for entry in entries),
    )


def _not_linked() -> ApiError:
    return invalid("phone_number", "NOT_LINKED", "The number is not linked to this profile.")


def _no_number() -> ApiError:
    return SubscriptionNotFound("The profile has no phone number, its own or linked, to withdraw consent for.")
