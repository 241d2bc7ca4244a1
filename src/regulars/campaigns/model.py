"""The data of campaigns and the rules without I/O: when a campaign starts and ends, and to which arm (a variant of the
text, or the holdout) each customer belongs."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.campaigns.confirmed_numbers import RecipientsAndCost
from regulars.campaigns.definition import Definition, SendAt, SendAtLocalTime
from regulars.experiments.arms import PERCENT
from regulars.texts.model import UNCHARGED_REASONS

# The `kind` with which campaigns register the segments that they use.
KIND: Final = "campaign"
# How many profile ids a piece of an audience has. One transaction stores the recipients of a piece.
PIECE_IDS: Final = 5_000
# The worker takes the next step of a campaign that is prepared or sent within this time.
STEP_WAIT_MAX: Final = timedelta(minutes=10)
# The time zone where each day begins first.
_EASTMOST: Final = timezone(timedelta(hours=14))


class CampaignState(StrEnum):
    DRAFT = "draft"
    SCHEDULED = "scheduled"
    # The worker fixes the audience and stores its recipients.
    PREPARING = "preparing"
    SENDING = "sending"
    PAUSED = "paused"
    ENDED = "ended"
    CANCELLED = "cancelled"


# States in which the worker has to continue the campaign.
ACTIVE: Final = frozenset({CampaignState.SCHEDULED, CampaignState.PREPARING, CampaignState.SENDING})
STOPPABLE: Final = ACTIVE | {CampaignState.PAUSED}
# In these states a campaign can be approved, unless its audience is fixed, and changed, unless a text was dialled.
EDITABLE: Final = frozenset({CampaignState.DRAFT, CampaignState.PAUSED})


class RecipientOutcome(StrEnum):
    """The outcome of a recipient. The numbers of all outcomes add up to the audience."""

    HELD_OUT = "held_out"
    # In the organization's global holdout, and so in no arm of this campaign.
    GLOBAL_HOLDOUT = "global_holdout"
    WAITING = "waiting"
    # Also while the text is being sent, because no event is recorded when sending begins.
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
# The outcome in totals for customers of the segments who may not be texted, so are no recipients; the reason says why.
WITHOUT_CONSENT: Final = "left_out"


class CampaignRow(NamedTuple):
    """A row of `campaigns`; the defaults are those of a new draft."""

    id: UUID
    name: str
    created_at: datetime
    created_by: str | None
    updated_at: datetime
    updated_by: str | None
    state: str = CampaignState.DRAFT.value
    is_archived: bool = False
    # The revision of the definition; each change increments it.
    revision: int = 1
    # The users who changed the definition; who changed it last is the last one.
    changed_by: Sequence[str] = ()
    # The state to which a paused campaign returns when it is resumed.
    resumes_to: str | None = None
    # Why the campaign is paused or ended.
    reason: str | None = None
    starts_at: datetime | None = None
    # Nothing is sent after this time.
    not_after: datetime | None = None
    # The numbers that a user saw and confirmed before the campaign was scheduled.
    confirmed_recipients: int | None = None
    # Amounts by currency as JSON, which `read_cost` reads.
    confirmed_cost: str | None = None
    confirmed_by: str | None = None
    approved_revision: int | None = None
    approved_by: str | None = None
    approved_at: datetime | None = None
    # The most recipients and the highest cost that the approval covers.
    approved_recipients: int | None = None
    approved_cost: str | None = None
    # The versions of the approved segments by id, as JSON.
    approved_segments: str | None = None
    # A `Question` as JSON, if the campaign was paused at its start because it exceeds the confirmed numbers.
    question: str | None = None
    # When the audience was fixed; its recipients are stored after that.
    frozen_at: datetime | None = None
    recipients: int | None = None
    ended_at: datetime | None = None

    @property
    def can_be_approved(self) -> bool:
        return self.state in EDITABLE and self.frozen_at is None


def start_of(definition: Definition, *, now: datetime) -> datetime:
    """When the campaign starts. A local time starts in the easternmost time zone, until the worker has counted the time
    zones of the audience (`local_times.py`)."""
    match definition.schedule:
        case SendAt(at=at):
            return at
        case SendAtLocalTime(day=day, time=clock):
            return max(now, datetime.combine(day, time.fromisoformat(clock), _EASTMOST).astimezone(UTC))
        case _:
            return now


def end_of(definition: Definition, start: datetime, zone: ZoneInfo) -> datetime:
    """The time after which nothing is sent: `not_after`, or by default the end of the second day."""
    if definition.not_after is not None:
        return definition.not_after
    second_day = start.astimezone(zone).date() + timedelta(days=1)
    if isinstance(definition.schedule, SendAtLocalTime):
        second_day = definition.schedule.day + timedelta(days=1)
    return datetime.combine(second_day + timedelta(days=1), time(), zone).astimezone(UTC)


def most_of(numbers: RecipientsAndCost, margin_percent: int) -> RecipientsAndCost:
    """The most that may be sent without another question if a user confirms these numbers."""
    factor = Decimal(PERCENT + margin_percent) / PERCENT
    cost = None if numbers.cost is None else {currency: amount * factor for currency, amount in numbers.cost.items()}
    return RecipientsAndCost(numbers.recipients * (PERCENT + margin_percent) // PERCENT, cost)


def needed_by(campaign_id: UUID) -> str:
    """The name under which a campaign registers that changes of its texts must be recorded for listeners."""
    return f"campaign {campaign_id}"


def changers_of(row: CampaignRow) -> list[str]:
    """The users who changed the definition. An older server adds none to `changed_by`; the campaign's creator is known
    nevertheless, and who changed a draft last."""
    changers = add_changer(row.changed_by, None)
    is_created_by_older = row.created_by not in row.changed_by
    if is_created_by_older and row.created_by is not None:
        changers.insert(0, row.created_by)
    is_last_change = is_created_by_older or row.state == CampaignState.DRAFT
    return add_changer(changers, row.updated_by) if is_last_change else changers


def add_changer(changed_by: Sequence[str], changer: str | None) -> list[str]:
    """The users who changed a campaign, after one more change."""
    return [*(it for it in changed_by if it != changer), *([] if changer is None else [changer])]


class TotalRow(NamedTuple):
    """How many recipients of an arm have an outcome, and the SMS parts of their texts."""

    arm: int
    outcome: str
    reason: str
    country: str
    recipients: int
    parts: int


def was_sent(outcome: str, reason: str) -> bool:
    """Whether the text of a recipient left, so that the provider charges for it; it may have failed later."""
    return outcome in RECEIVED or (outcome == RecipientOutcome.FAILED and reason not in UNCHARGED_REASONS)


def add_up(totals: Sequence[TotalRow]) -> Mapping[str, int]:
    """The number of recipients by outcome; outcomes without recipients have 0."""
    numbers = dict.fromkeys((outcome.value for outcome in RecipientOutcome), 0)
    for row in totals:
        if row.outcome != WITHOUT_CONSENT:
            numbers[row.outcome] += row.recipients
    return numbers
