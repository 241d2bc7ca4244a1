"""Rows of the tables of campaigns, and their pure rules: when a campaign starts and ends, and who is in which arm."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from regulars.campaigns.definition import PERCENT, Definition, SendAt, SendAtLocalTime, Variant

# The kind under which segments register the campaigns that use them.
KIND: Final = "campaign"
# The arm of recipients who are held out; variants are counted from 1 on.
HELD_OUT_ARM: Final = 0
# Customers of the global holdout, and the totals of customers who are no recipients, stand under this arm.
NO_ARM: Final = -1
_SHARES: Final = 10_000
# Where a day begins first.
_EASTMOST: Final = timezone(timedelta(hours=14))


class CampaignState(StrEnum):
    DRAFT = "draft"
    SCHEDULED = "scheduled"
    # The audience is frozen and its recipients are stored.
    PREPARING = "preparing"
    SENDING = "sending"
    PAUSED = "paused"
    ENDED = "ended"
    CANCELLED = "cancelled"


ACTIVE: Final = frozenset({CampaignState.SCHEDULED, CampaignState.PREPARING, CampaignState.SENDING})
STOPPABLE: Final = ACTIVE | {CampaignState.PAUSED}


class RecipientOutcome(StrEnum):
    """What became of a recipient. Their sum is the audience."""

    HELD_OUT = "held_out"
    # In no arm of this campaign.
    GLOBAL_HOLDOUT = "global_holdout"
    WAITING = "waiting"
    # Also while it is being sent: messaging publishes no fact when a text is claimed.
    QUEUED = "queued"
    UNKNOWN = "unknown"
    SENT = "sent"
    DELIVERED = "delivered"
    FAILED = "failed"
    SKIPPED = "skipped"
    EXPIRED = "expired"
    ERASED = "erased"


GETS_NO_TEXT: Final = frozenset({RecipientOutcome.HELD_OUT, RecipientOutcome.GLOBAL_HOLDOUT})
RECEIVED: Final = frozenset({RecipientOutcome.SENT, RecipientOutcome.DELIVERED, RecipientOutcome.UNKNOWN})
# In totals: customers of the segments who are no recipients, by reason.
LEFT_OUT: Final = "left_out"


class CampaignRow(NamedTuple):
    id: UUID
    name: str
    state: str
    is_archived: bool
    revision: int
    # While it is paused: the state it returns to.
    resumes_to: str | None
    # Why it is paused or ended.
    reason: str | None
    starts_at: datetime | None
    not_after: datetime | None
    confirmed_recipients: int | None
    # By currency, as JSON; `read_cost` reads it.
    confirmed_cost: str | None
    confirmed_by: str | None
    approved_revision: int | None
    approved_by: str | None
    # Why it was paused at its start, as JSON: more was found than was confirmed.
    question: str | None
    frozen_at: datetime | None
    recipients: int | None
    ended_at: datetime | None
    created_at: datetime
    created_by: str | None
    updated_at: datetime
    updated_by: str | None


# By currency.
Cost = Mapping[str, Decimal]


def write_cost(cost: Cost | None) -> str | None:
    return None if cost is None else msgspec.json.encode(cost).decode()


def read_cost(stored: str | None) -> Cost | None:
    """None: no cost was confirmed."""
    return None if stored is None else msgspec.json.decode(stored, type=dict[str, Decimal])


class Question(msgspec.Struct, frozen=True):
    """What a campaign found when it started. A person confirms these numbers, or changes the campaign."""

    recipients: int
    cost: dict[str, Decimal]


def read_question(row: CampaignRow) -> Question | None:
    return None if row.question is None else msgspec.json.decode(row.question, type=Question)


def start_of(definition: Definition, *, now: datetime) -> datetime:
    """When the audience is frozen. Local times begin in the zone where a day begins first."""
    match definition.schedule:
        case SendAt(at=at):
            return at
        case SendAtLocalTime(day=day, time=clock):
            return max(now, datetime.combine(day, time.fromisoformat(clock), _EASTMOST).astimezone(UTC))
        case _:
            return now


def end_of(definition: Definition, start: datetime, zone: ZoneInfo) -> datetime:
    """The last moment of sending: the one that is set, or the end of the second day."""
    if definition.not_after is not None:
        return definition.not_after
    second_day = start.astimezone(zone).date() + timedelta(days=1)
    if isinstance(definition.schedule, SendAtLocalTime):
        second_day = definition.schedule.day + timedelta(days=1)
    return datetime.combine(second_day + timedelta(days=1), time(), zone).astimezone(UTC)


class Place(NamedTuple):
    """Where a recipient stands: the arm, and the position in the random order of sending."""

    arm: int
    position: int


def place_of(campaign_id: UUID, profile_id: bytes, *, holdout_percent: int, variants: Sequence[Variant]) -> Place:
    """Always the same for a campaign and a customer. The arm and the position come from different bits of the hash."""
    digest = hashlib.sha256(campaign_id.bytes + profile_id).digest()
    position = int.from_bytes(digest[8:12], "big") >> 1
    if int.from_bytes(digest[:8], "big") % _SHARES < holdout_percent * _SHARES // 100:
        return Place(HELD_OUT_ARM, position)
    drawn, reached = int.from_bytes(digest[16:24], "big") % 100, 0
    for arm, variant in enumerate(variants, start=1):
        reached += variant.share
        if drawn < reached:
            return Place(arm, position)
    return Place(len(variants), position)


def split_holdout(may_be_texted: int, holdout_percent: int) -> tuple[int, int]:
    """Expected recipients of a text, and customers who are held out."""
    held_out = round(may_be_texted * holdout_percent / PERCENT)
    return may_be_texted - held_out, held_out


def exceeds(counted: float, confirmed: float, *, margin_percent: int) -> bool:
    return counted > confirmed * (1 + margin_percent / 100)


def needed_by(campaign_id: UUID) -> str:
    """Under which name a campaign registers its interest in the facts of its texts."""
    return f"campaign {campaign_id}"


class TotalRow(NamedTuple):
    """How many recipients of an arm have an outcome, and the parts of their texts."""

    arm: int
    outcome: str
    reason: str
    country: str
    recipients: int
    parts: int


def add_up(totals: Sequence[TotalRow]) -> Mapping[str, int]:
    """Recipients by outcome, every outcome named."""
    found = dict.fromkeys((outcome.value for outcome in RecipientOutcome), 0)
    for row in totals:
        if row.outcome != LEFT_OUT:
            found[row.outcome] += row.recipients
    return found
