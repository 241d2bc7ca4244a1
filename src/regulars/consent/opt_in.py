"""Record consents: the list use case behind `POST /v1/subscriptions/opt-in`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from regulars.consent import chain
from regulars.consent.ledger import (
    Entry,
    Origin,
    Recorded,
    Said,
    find_missing_external_ids,
    open_ledger,
)
from regulars.consent.model import CLAIM_AHEAD_MAX, OptIn, Proof, opt_in_automation
from regulars.consent.subscription import subscription_of
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, ConsentedAtInFuture, FieldError, ProfileNotFound
from regulars.kit.ids import Reference
from regulars.profiles.find import find_profiles, find_profiles_by_phone, lock_profiles
from regulars.profiles.model import ProfileRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """An opt-in as a caller states it; the number is E.164."""

    phone_number: str
    source: str
    consented_at: datetime
    origin: Origin
    proof: Proof | None = None
    profile: Reference | None = None
    # The unknown members of the body it was read from.
    ignored: tuple[str, ...] = ()


async def opt_in(
    tx: Tx, organization_id: UUID, consents: Sequence[Consent], *, secret: bytes
) -> list[Recorded | ApiError]:
    """Record the consents in order; each is answered with the subscription as it stood right after it."""
    in_time = [consent for consent in consents if not _is_in_future(consent, tx.now)]
    profiles = await _Profiles.look_up(tx, organization_id, in_time)
    events = [_event(consent, profiles, now=tx.now) for consent in consents]
    hashes = [chain.hash_number(secret, consent.phone_number) for consent in consents]
    accepted = [number_hash for number_hash, event in zip(hashes, events, strict=True) if isinstance(event, OptIn)]
    ledger = await open_ledger(tx, organization_id, new=accepted)
    decided: list[Entry | ApiError] = []
    for consent, event, number_hash in zip(consents, events, hashes, strict=True):
        if isinstance(event, OptIn):
            decided.append(ledger.append(number_hash, event, Said(origin=consent.origin)))
        else:
            decided.append(event)
    await ledger.write()
    entries = [entry for entry in decided if isinstance(entry, Entry)]
    external_ids = await find_missing_external_ids(tx, organization_id, entries, profiles.external_ids)
    return [
        _recorded(consent, entry, external_ids, now=tx.now) if isinstance(entry, Entry) else entry
        for consent, entry in zip(consents, decided, strict=True)
    ]


def _is_in_future(consent: Consent, now: datetime) -> bool:
    return consent.consented_at > now + CLAIM_AHEAD_MAX


@dataclass(frozen=True, slots=True)
class _Profiles:
    """The profiles a batch names, and the only one of each number where it names none; all held in existence."""

    named: Mapping[Reference, ProfileRef]
    only_one: Mapping[str, ProfileRef]

    @classmethod
    async def look_up(cls, tx: Tx, organization_id: UUID, consents: Sequence[Consent]) -> "_Profiles":
        references = {consent.profile for consent in consents if consent.profile is not None}
        numbers = {consent.phone_number for consent in consents if consent.profile is None}
        named = await find_profiles(tx, organization_id, references) if references else {}
        by_number = await find_profiles_by_phone(tx, organization_id, numbers) if numbers else {}
        only_one = {number: found[0] for number, found in by_number.items() if len(found) == 1}
        # Looked up and locked are two statements; a profile that was erased in between is gone for this batch too.
        ids = {profile.id for profile in (*named.values(), *only_one.values())}
        alive = await lock_profiles(tx, organization_id, ids) if ids else set()
        return cls(
            {reference: profile for reference, profile in named.items() if profile.id in alive},
            {number: profile for number, profile in only_one.items() if profile.id in alive},
        )

    @property
    def external_ids(self) -> dict[UUID, str]:
        return {profile.id: profile.external_id for profile in (*self.named.values(), *self.only_one.values())}


def _event(consent: Consent, profiles: _Profiles, *, now: datetime) -> OptIn | ApiError:
    if _is_in_future(consent, now):
        message = "It lies more than five minutes ahead of the service's clock."
        return ConsentedAtInFuture(
            f"consented_at: {message}", errors=(FieldError("consented_at", "IN_FUTURE", message),)
        )
    named = profiles.named.get(consent.profile) if consent.profile is not None else None
    if consent.profile is not None and named is None:
        return ProfileNotFound("profile_id names no profile of this organization.")
    found = profiles.only_one.get(consent.phone_number) if consent.profile is None else None
    return OptIn(
        phone_number=consent.phone_number,
        source=consent.source,
        claimed_at=consent.consented_at,
        received_at=now,
        proof=consent.proof,
        profile_id=named.id if named else None,
        found_profile_id=found.id if found else None,
    )


def _recorded(consent: Consent, entry: Entry, external_ids: Mapping[UUID, str], *, now: datetime) -> Recorded:
    # The number of an erased entry is not kept, but whoever just sent it is answered about it.
    state = replace(entry.state, phone_number=consent.phone_number)
    return Recorded(
        subscription=subscription_of(entry.head, state, external_ids),
        outcome=entry.outcome,
        automation=opt_in_automation(entry.outcome, consented_at=consent.consented_at, now=now),
    )
