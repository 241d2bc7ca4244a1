"""Record a list of consents to be texted, for `POST /v1/subscriptions/opt-in`, imports and START replies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from regulars.consent import chain
from regulars.consent.errors import ConsentedAtInFuture
from regulars.consent.ledger import AppendedEvent, EventDetails, EventOrigin, OptInResult, open_ledger
from regulars.consent.model import CLAIM_AHEAD_MAX, OptIn, Proof, opt_in_automation
from regulars.consent.subscription import find_external_ids, make_subscription
from regulars.kit.clock import is_in_future
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, FieldError
from regulars.kit.ids import Reference
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.find import find_profiles, find_profiles_by_phone, lock_profiles
from regulars.profiles.model import ProfileRef
from regulars.stores.find import find_stores
from regulars.stores.model import StoreNotFound, StoreRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """An opt-in as a caller states it; the number is E.164."""

    phone_number: str
    source: str
    consented_at: datetime
    origin: EventOrigin
    proof: Proof | None = None
    profile: Reference | None = None
    store: Reference | None = None
    # The body of the text message, if the person consented by a text message.
    message: str | None = None
    # Whether the number stays linked to the profile that it had before its withdrawal.
    keeps_profile: bool = False
    # The unknown fields of the request body.
    ignored: tuple[str, ...] = ()


async def opt_in(
    tx: Tx,
    organization_id: UUID,
    consents: Sequence[Consent],
    *,
    secret: bytes,
    references: "OptInReferences | None" = None,
) -> list[OptInResult | ApiError]:
    """Record the consents in order; returns for each consent the subscription right after it.

    Every transaction locks profiles before numbers, which prevents deadlocks. So a caller that has locked a number
    loaded and locked the profiles before, and passes them as `references`.
    """
    if references is None:
        references = await OptInReferences.load(
            tx, organization_id, [consent for consent in consents if not _is_in_future(consent, tx.now)]
        )
    events = [_make_event(consent, references, now=tx.now) for consent in consents]
    hashes = [chain.hash_number(secret, consent.phone_number) for consent in consents]
    accepted = [number_hash for number_hash, event in zip(hashes, events, strict=True) if isinstance(event, OptIn)]
    ledger = open_ledger(tx, organization_id, accepted)
    positions = [
        ledger.append(number_hash, event, EventDetails(origin=consent.origin, message=consent.message))
        if isinstance(event, OptIn)
        else event
        for consent, event, number_hash in zip(consents, events, hashes, strict=True)
    ]
    entries = await ledger.write()
    external_ids = await find_external_ids(
        tx, organization_id, [entry.state for entry in entries], references.external_ids
    )
    return [
        position if isinstance(position, ApiError) else _result(consent, entries[position], external_ids, now=tx.now)
        for consent, position in zip(consents, positions, strict=True)
    ]


def _is_in_future(consent: Consent, now: datetime) -> bool:
    return is_in_future(consent.consented_at, now=now, tolerance=CLAIM_AHEAD_MAX)


@dataclass(frozen=True, slots=True)
class OptInReferences:
    """The profiles and stores that a batch names, with the profiles locked against deletion. For a consent that names
    no profile, `only_profiles` has the profile with the consent's phone number, if there is exactly one."""

    profiles: Mapping[Reference, ProfileRef]
    only_profiles: Mapping[str, ProfileRef]
    stores: Mapping[Reference, StoreRef]

    @classmethod
    async def load(cls, tx: Tx, organization_id: UUID, consents: Sequence[Consent]) -> "OptInReferences":
        references = {consent.profile for consent in consents if consent.profile is not None}
        numbers = {consent.phone_number for consent in consents if consent.profile is None}
        store_references = {consent.store for consent in consents if consent.store is not None}
        named = await find_profiles(tx, organization_id, references) if references else {}
        by_number = await find_profiles_by_phone(tx, organization_id, numbers) if numbers else {}
        only_profiles = {number: profiles[0] for number, profiles in by_number.items() if len(profiles) == 1}
        # The look-up and the lock are two statements: a profile that was erased between them counts as missing.
        ids = {profile.id for profile in (*named.values(), *only_profiles.values())}
        existing = await lock_profiles(tx, organization_id, ids) if ids else set()
        return cls(
            {reference: profile for reference, profile in named.items() if profile.id in existing},
            {number: profile for number, profile in only_profiles.items() if profile.id in existing},
            await find_stores(tx, organization_id, store_references) if store_references else {},
        )

    @property
    def external_ids(self) -> dict[UUID, str]:
        profiles = (*self.profiles.values(), *self.only_profiles.values())
        external_ids = {profile.id: profile.external_id for profile in profiles}
        return external_ids | {store.id: store.external_id for store in self.stores.values()}


def _make_event(consent: Consent, references: OptInReferences, *, now: datetime) -> OptIn | ApiError:
    if _is_in_future(consent, now):
        message = "It lies more than five minutes ahead of the service's clock."
        return ConsentedAtInFuture(
            f"consented_at: {message}", errors=(FieldError("consented_at", "IN_FUTURE", message),)
        )
    named = references.profiles.get(consent.profile) if consent.profile is not None else None
    if consent.profile is not None and named is None:
        return ProfileNotFound("profile_id names no profile of this organization.")
    store = references.stores.get(consent.store) if consent.store is not None else None
    if consent.store is not None and store is None:
        return StoreNotFound("store_id names no store of this organization.")
    only_profile = references.only_profiles.get(consent.phone_number) if consent.profile is None else None
    return OptIn(
        phone_number=consent.phone_number,
        source=consent.source,
        claimed_at=consent.consented_at,
        received_at=now,
        proof=consent.proof,
        profile_id=named.id if named else None,
        found_profile_id=only_profile.id if only_profile else None,
        store_id=store.id if store else None,
        keeps_profile=consent.keeps_profile,
    )


def _result(consent: Consent, entry: AppendedEvent, external_ids: Mapping[UUID, str], *, now: datetime) -> OptInResult:
    # An entry of an erased number does not store the number, but the caller sent it, so the response may contain it.
    state = replace(entry.state, phone_number=consent.phone_number)
    return OptInResult(
        subscription=make_subscription(entry.ledger_head, state, external_ids),
        outcome=entry.outcome,
        automation=opt_in_automation(entry.outcome, consented_at=consent.consented_at, now=now),
    )
