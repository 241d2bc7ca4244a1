"""The rules of consent: how an opt-in, opt-out or erasure changes the consent state of a phone number, without I/O.

Events are ordered by the time they took effect: the time that the API caller states, or the time of arrival if that is
earlier. Among events of the same time, an opt-out comes after every opt-in, and of two opt-ins the later arrival comes
last. The last event decides the status, so a number ends in the same status, with the same time of withdrawal, whatever
the order in which its events arrive.

`apply` needs only the state before the event, not the earlier events. A test compares its results with the result of
applying all events in order.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, NamedTuple
from uuid import UUID

from regulars.consent.chain import ChainLink
from regulars.work.facts import AutomationState, eligibility_of

# How far the time that a caller states may lie in the future, because clocks differ.
CLAIM_AHEAD_MAX = timedelta(minutes=5)
ConsentSource = Literal[
    "LOYALTY_PROGRAM", "POINT_OF_SALE", "WEBSITE", "CHECKOUT", "MOBILE_APP", "SMS_KEYWORD", "QR_CODE", "CALL_CENTER",
    "PAPER_FORM", "EVENT", "SOCIAL", "IMPORT", "OTHER",
]  # fmt: skip


class Status(StrEnum):
    SUBSCRIBED = "SUBSCRIBED"
    UNSUBSCRIBED = "UNSUBSCRIBED"


class Outcome(StrEnum):
    """The effect of an event on the state of its number."""

    CREATED = "created"
    RESUBSCRIBED = "resubscribed"
    UPDATED = "updated"
    ALREADY_SUBSCRIBED = "already_subscribed"
    # A later event was known already, so the subscription does not change.
    SUPERSEDED = "superseded"
    UNSUBSCRIBED = "unsubscribed"
    ALREADY_UNSUBSCRIBED = "already_unsubscribed"


class Reason(StrEnum):
    """Why a phone number or a profile may be texted or not; a later release may add values."""

    SUBSCRIBED = "SUBSCRIBED"
    UNSUBSCRIBED = "UNSUBSCRIBED"
    NEVER_ASKED = "NEVER_ASKED"
    DO_NOT_CONTACT = "DO_NOT_CONTACT"
    # The customer sent a reply that may be a STOP, and no user has decided about it yet.
    SUPPRESSED = "SUPPRESSED"
    UNKNOWN_PROFILE = "UNKNOWN_PROFILE"
    INVALID_PHONE_NUMBER = "INVALID_PHONE_NUMBER"


class Kind(StrEnum):
    """The kind of an event."""

    OPT_IN = "OPT_IN"
    OPT_OUT = "OPT_OUT"
    ERASURE = "ERASURE"


@dataclass(frozen=True, slots=True)
class Proof:
    """The terms or the text that the person agreed to. An empty proof is stored as None."""

    terms_url: str | None = None
    terms_version: str | None = None
    source_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OptIn:
    phone_number: str
    source: str
    # When the person consented, as the caller states it.
    claimed_at: datetime
    received_at: datetime
    proof: Proof | None = None
    # The profile that the caller named.
    profile_id: UUID | None = None
    # The only profile that has this phone number; the number is linked to it if the caller named no profile.
    found_profile_id: UUID | None = None
    # The store where the consent was given.
    store_id: UUID | None = None
    # Whether a withdrawn number stays linked to its profile: true for START, which the same person sends.
    keeps_profile: bool = False

    @property
    def kind(self) -> Kind:
        return Kind.OPT_IN


@dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    phone_number: str | None
    received_at: datetime
    # None: the withdrawal takes effect now, after all events recorded so far, and is never superseded.
    claimed_at: datetime | None = None
    # The profile that the withdrawal named; a number without a profile is linked to it.
    profile_id: UUID | None = None
    # An erasure also removes number, profile and consent.
    erases: bool = False

    @property
    def kind(self) -> Kind:
        return Kind.ERASURE if self.erases else Kind.OPT_OUT


Event = OptIn | OptOut


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionState:
    """The consent state of a number; the last two fields decide the outcome of the next event.

    The phone number is None once its person is erased.
    """

    phone_number: str | None
    profile_id: UUID | None = None
    store_id: UUID | None = None
    source: str | None = None
    consented_at: datetime | None = None
    proof: Proof | None = None
    latest_opt_in_at: datetime | None = None
    latest_opt_out_at: datetime | None = None

    @property
    def status(self) -> Status:
        return status_of(self.latest_opt_in_at, self.latest_opt_out_at)

    @property
    def unsubscribed_at(self) -> datetime | None:
        return self.latest_opt_out_at if self.status is Status.UNSUBSCRIBED else None

    @property
    def is_erased(self) -> bool:
        return self.phone_number is None

    def equals_in_api(self, other: "SubscriptionState") -> bool:
        """Whether the API response is the same for `self` and `other`. The times of the latest opt-in and opt-out,
        which it does not always contain, may differ."""
        return _shown_fields(self) == _shown_fields(other)


def status_of(latest_opt_in_at: datetime | None, latest_opt_out_at: datetime | None) -> Status:
    """The later of the two decides; at the same time, the opt-out does."""
    if latest_opt_in_at is None or (latest_opt_out_at is not None and latest_opt_out_at >= latest_opt_in_at):
        return Status.UNSUBSCRIBED
    return Status.SUBSCRIBED


class LedgerEntry(ChainLink, frozen=True):
    """An entry of the ledger; salt and payload are None once they are erased."""

    hash: bytes
    salt: bytes | None
    payload: str | None


class AppliedEvent(NamedTuple):
    """The state after an event, its outcome, and the time by which it is ordered."""

    state: SubscriptionState
    outcome: Outcome
    effective_at: datetime


def apply(state: SubscriptionState | None, event: Event) -> AppliedEvent:
    """Apply one event to the current state; `state` is None if the number is unknown."""
    if isinstance(event, OptIn):
        return _apply_opt_in(state, event)
    return _apply_opt_out(state, event)


def _apply_opt_in(state: SubscriptionState | None, event: OptIn) -> AppliedEvent:
    effective_at = min(event.claimed_at, event.received_at)
    if state is None:
        return AppliedEvent(_subscribe(event, None, latest_opt_in_at=effective_at), Outcome.CREATED, effective_at)
    latest_opt_in_at = _later(state.latest_opt_in_at, effective_at)
    is_before_opt_out = state.latest_opt_out_at is not None and effective_at <= state.latest_opt_out_at
    if is_before_opt_out or effective_at < latest_opt_in_at:
        return AppliedEvent(replace(state, latest_opt_in_at=latest_opt_in_at), Outcome.SUPERSEDED, effective_at)
    after = _subscribe(event, state, latest_opt_in_at=latest_opt_in_at)
    if state.status is Status.UNSUBSCRIBED:
        return AppliedEvent(after, Outcome.RESUBSCRIBED, effective_at)
    outcome = Outcome.ALREADY_SUBSCRIBED if after.equals_in_api(state) else Outcome.UPDATED
    return AppliedEvent(after, outcome, effective_at)


def _apply_opt_out(state: SubscriptionState | None, event: OptOut) -> AppliedEvent:
    effective_at = _opt_out_time(event, None if state is None else _latest(state))
    if state is None:
        withdrawn = SubscriptionState(
            phone_number=None if event.erases else event.phone_number,
            profile_id=None if event.erases else event.profile_id,
            latest_opt_out_at=effective_at,
        )
        return AppliedEvent(withdrawn, Outcome.UNSUBSCRIBED, effective_at)
    with_opt_out_time = replace(state, latest_opt_out_at=_later(state.latest_opt_out_at, effective_at))
    if state.latest_opt_in_at is not None and effective_at < state.latest_opt_in_at:
        return AppliedEvent(with_opt_out_time, Outcome.SUPERSEDED, effective_at)
    was_subscribed = state.status is Status.SUBSCRIBED
    outcome = Outcome.UNSUBSCRIBED if was_subscribed else Outcome.ALREADY_UNSUBSCRIBED
    if event.erases:
        erased = SubscriptionState(
            phone_number=None,
            latest_opt_in_at=with_opt_out_time.latest_opt_in_at,
            latest_opt_out_at=with_opt_out_time.latest_opt_out_at,
        )
        return AppliedEvent(erased, outcome, effective_at)
    # An erased number is linked to no profile until a new consent.
    profile_id = None if state.is_erased else state.profile_id or event.profile_id
    return AppliedEvent(replace(with_opt_out_time, profile_id=profile_id), outcome, effective_at)


def opt_in_automation(outcome: Outcome, *, consented_at: datetime, now: datetime) -> AutomationState:
    """Whether an opt-in may start journeys: only if it subscribes the number, and within seven days of the consent."""
    if outcome not in (Outcome.CREATED, Outcome.RESUBSCRIBED):
        return "not_applicable"
    return eligibility_of(consented_at, now=now)


def _opt_out_time(event: OptOut, latest: datetime | None) -> datetime:
    if event.claimed_at is not None:
        return min(event.claimed_at, event.received_at)
    return _later(latest, event.received_at)


def _subscribe(event: OptIn, before: SubscriptionState | None, *, latest_opt_in_at: datetime) -> SubscriptionState:
    """The state after an opt-in that takes effect. If the number is subscribed already, fields that are missing in the
    opt-in keep their stored value; a new consent clears them."""
    retained = before if before is not None and before.status is Status.SUBSCRIBED else None
    linked = before.profile_id if before is not None and (retained or event.keeps_profile) else None
    return SubscriptionState(
        phone_number=event.phone_number,
        profile_id=event.profile_id or linked or event.found_profile_id,
        store_id=event.store_id or (retained.store_id if retained else None),
        source=event.source,
        consented_at=event.claimed_at,
        proof=_merge_proofs(event.proof, retained.proof if retained else None),
        latest_opt_in_at=latest_opt_in_at,
        latest_opt_out_at=None if before is None else before.latest_opt_out_at,
    )


def _merge_proofs(sent: Proof | None, stored: Proof | None) -> Proof | None:
    """The sent proof, with the stored value for each missing field, so that sending less data deletes nothing."""
    if sent is None or stored is None:
        return sent or stored
    return Proof(
        stored.terms_url if sent.terms_url is None else sent.terms_url,
        stored.terms_version if sent.terms_version is None else sent.terms_version,
        stored.source_text if sent.source_text is None else sent.source_text,
    )


def _latest(state: SubscriptionState) -> datetime | None:
    if state.latest_opt_out_at is None:
        return state.latest_opt_in_at
    return _later(state.latest_opt_in_at, state.latest_opt_out_at)


def _later(current: datetime | None, other: datetime) -> datetime:
    return other if current is None else max(current, other)


def _shown_fields(state: SubscriptionState) -> tuple[object, ...]:
    return (
        state.status,
        state.phone_number,
        state.profile_id,
        state.store_id,
        state.source,
        state.consented_at,
        state.proof,
        state.unsubscribed_at,
    )
