"""The one gate that decides whether a text leaves now. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from regulars.messaging.hours import next_opening
from regulars.messaging.model import Reason
from regulars.messaging.places import Place
from regulars.messaging.rules import Cap, Rule


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


def _is_reached(cap: Cap, earlier: Sequence[datetime], now: datetime) -> bool:
    since = now - timedelta(hours=cap.hours)
    return sum(moment > since for moment in earlier) >= cap.texts
