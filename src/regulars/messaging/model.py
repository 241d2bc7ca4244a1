"""The rules of a text: its states, and the one gate that decides whether it leaves now. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from regulars.messaging.hours import WAIT_MAX, Rule, next_opening
from regulars.messaging.places import Place
from regulars.messaging.rules import Cap


class State(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    # Whether it left is not known, so it is never sent again by itself.
    UNKNOWN = "unknown"
    SENT = "sent"
    DELIVERED = "delivered"
    FAILED = "failed"
    SKIPPED = "skipped"


# A receipt may come before our own commit, late, or twice: a text only moves forward.
_ORDER: Final = {
    State.QUEUED: 0,
    State.SENDING: 1,
    State.UNKNOWN: 2,
    State.SENT: 3,
    State.DELIVERED: 4,
    State.FAILED: 4,
    State.SKIPPED: 4,
}


class OriginKind(StrEnum):
    PERSON = "person"
    JOURNEY = "journey"
    CAMPAIGN = "campaign"
    # The one confirmation of a STOP, and the answer to HELP: exempt from consent, hours and cap.
    STOP = "stop"
    HELP = "help"
    ANSWER = "answer"


EXEMPT: Final = frozenset({OriginKind.STOP, OriginKind.HELP})
EXEMPT_EXPIRES_AFTER: Final = timedelta(minutes=5)
EXPIRES_AFTER: Final = WAIT_MAX


class TextRow(NamedTuple):
    """A text as it is kept."""

    id: UUID
    origin_kind: str
    origin_id: UUID
    step: str
    profile_id: UUID | None
    number_hash: bytes | None
    phone_number: str | None
    body: str
    parts: int
    state: str
    reason: str | None
    due_at: datetime | None
    expires_at: datetime
    attempts: int
    provider: str | None
    provider_id: str | None
    created_at: datetime
    claimed_at: datetime | None
    ended_at: datetime | None


class Reason(StrEnum):
    """Why a text was skipped, or failed."""

    NO_CONSENT = "no_consent"
    NOT_LINKED = "not_linked"
    SUPPRESSED = "suppressed"
    CAP = "cap"
    HOURS = "hours"
    EXPIRED = "expired"
    NO_COUNTRY = "no_country"
    COUNTRY_NOT_SET = "country_not_set"
    MISSING_VALUE = "missing_value"
    TOO_LONG = "too_long"
    LEFT = "left"
    REFUSED = "refused"
    NOT_REACHED = "not_reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What the gate needs to know of a text, and of its number at this very moment."""

    is_exempt: bool
    profile_id: UUID | None
    expires_at: datetime
    place: Place
    is_country_set: bool
    is_subscribed: bool
    linked_profile_id: UUID | None
    is_suppressed: bool
    rule: Rule
    # When texts that count were let through, the caps' longest window back.
    earlier: Sequence[datetime]


@dataclass(frozen=True, slots=True)
class Send:
    """It may leave, and must not arrive after this moment."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Wait:
    until: datetime


@dataclass(frozen=True, slots=True)
class Skip:
    reason: Reason


Decision = Send | Wait | Skip


def decide(text: Candidate, caps: Sequence[Cap], now: datetime) -> Decision:
    """The gate. Whatever is asked for, and by whom, this is asked in the transaction that claims the text."""
    if now >= text.expires_at:
        return Skip(Reason.EXPIRED)
    if text.is_exempt:
        return Send(text.expires_at)
    if not text.is_subscribed:
        return Skip(Reason.NO_CONSENT)
    if text.profile_id is not None and text.profile_id != text.linked_profile_id:
        return Skip(Reason.NOT_LINKED)
    if text.is_suppressed:
        return Skip(Reason.SUPPRESSED)
    country = text.place.country
    if country is None:
        return Skip(Reason.NO_COUNTRY)
    if not text.is_country_set:
        return Skip(Reason.COUNTRY_NOT_SET)
    if any(_is_reached(cap, text.earlier, now) for cap in caps):
        return Skip(Reason.CAP)
    opening = next_opening(text.rule, country, text.place.zones, now, region=text.place.region)
    if opening.at is None or opening.closes_at is None or opening.at >= text.expires_at:
        return Skip(Reason.HOURS)
    return Send(min(opening.closes_at, text.expires_at)) if opening.is_open(now) else Wait(opening.at)


def moves_forward(before: State, after: State) -> bool:
    return _ORDER[after] > _ORDER[before]


def _is_reached(cap: Cap, earlier: Sequence[datetime], now: datetime) -> bool:
    since = now - timedelta(hours=cap.hours)
    return sum(moment > since for moment in earlier) >= cap.texts
