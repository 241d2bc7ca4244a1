"""What a text and a reply are: origin, states, and why a text was skipped. No I/O."""

from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from regulars.messaging.settings.model import WAIT_MAX


class TextState(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    # The text may or may not have been sent, so it is sent again only if a user decides so.
    UNKNOWN = "unknown"
    SENT = "sent"
    DELIVERED = "delivered"
    FAILED = "failed"
    SKIPPED = "skipped"


# The order of states. A receipt may arrive before our own commit, late, or twice, so a state only moves forward.
_ORDER: Final = {
    TextState.QUEUED: 0,
    TextState.SENDING: 1,
    TextState.UNKNOWN: 2,
    TextState.SENT: 3,
    TextState.DELIVERED: 4,
    TextState.FAILED: 4,
    TextState.SKIPPED: 4,
}


class OriginKind(StrEnum):
    PERSON = "person"
    JOURNEY = "journey"
    CAMPAIGN = "campaign"
    # The one confirmation of a STOP, and the response to HELP: exempt from consent, hours and caps.
    STOP = "stop"
    HELP = "help"
    ANSWER = "answer"
    # A test text to a verified number of the team: it needs no opt-in, is sent at any hour and counts in no cap.
    TEST = "test"


class Priority(IntEnum):
    """Texts with a lower number are sent first. Rows of an old release without priorities are personal."""

    REPLY = 0
    PERSONAL = 1
    CAMPAIGN = 2


EXEMPT: Final = frozenset({OriginKind.STOP, OriginKind.HELP})
# Texts of these origins count in no cap.
UNCOUNTED: Final = EXEMPT | {OriginKind.TEST}
EXEMPT_EXPIRES_AFTER: Final = timedelta(minutes=5)
EXPIRES_AFTER: Final = WAIT_MAX
# How long texts, replies and clicks are stored: 25 months.
RETENTION: Final = timedelta(days=762)
# How long the queue postpones due texts while the organization is on hold.
HOLD_POSTPONES_BY: Final = timedelta(minutes=10)


class TextRow(NamedTuple):
    """A row of `texts`."""

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
    priority: int = Priority.PERSONAL.value


class SkipReason(StrEnum):
    """Why a text was skipped, or why it failed."""

    NO_CONSENT = "no_consent"
    NOT_LINKED = "not_linked"
    SUPPRESSED = "suppressed"
    CAP = "cap"
    HOURS = "hours"
    EXPIRED = "expired"
    NO_COUNTRY = "no_country"
    COUNTRY_NOT_SET = "country_not_set"
    SENDER_REFUSED = "sender_refused"
    MISSING_VALUE = "missing_value"
    TOO_LONG = "too_long"
    LEFT = "left"
    REFUSED = "refused"
    NOT_REACHED = "not_reached"
    CANCELLED = "cancelled"
    GLOBAL_HOLDOUT = "global_holdout"


def priority_of(kind: OriginKind) -> Priority:
    if kind in EXEMPT:
        return Priority.REPLY
    return Priority.CAMPAIGN if kind is OriginKind.CAMPAIGN else Priority.PERSONAL


def moves_forward(before: TextState, after: TextState) -> bool:
    return _ORDER[after] > _ORDER[before]


class ReplyToOrigin(NamedTuple):
    """A reply, and the step of the origin's text to the same number."""

    id: UUID
    meaning: str
    decided: str | None
    received_at: datetime
    step: str


class ReplyRow(NamedTuple):
    id: UUID
    provider: str
    provider_id: str
    number_hash: bytes
    phone_number: str
    profile_id: UUID | None
    body: str
    meaning: str
    decided: str | None
    decided_by: str | None
    decided_at: datetime | None
    due_at: datetime | None
    received_at: datetime

    @property
    def attempts(self) -> int:
        """An overdue decision is made once, whatever happened before."""
        return 0


class ConversationLine(NamedTuple):
    """One line of a conversation with a number: a text of ours, or a reply."""

    at: datetime
    text: TextRow | None = None
    reply: ReplyRow | None = None


class MessageLine(NamedTuple):
    """A text of ours, or a reply: `state` is the state of the text or the meaning of the reply; `reason` is why the
    text was skipped, or what was decided about the reply."""

    id: UUID
    is_received: bool
    at: datetime
    number_hash: bytes | None
    phone_number: str | None
    profile_id: UUID | None
    first_name: str | None
    last_name: str | None
    profile_external_id: str | None
    body: str
    parts: int
    origin_kind: str
    state: str
    reason: str | None
    origin_id: UUID | None = None


class MessageFilter(NamedTuple):
    """Which messages a list shows; `since` and `until` are ids, which are in the order of time."""

    is_sent: bool = True
    is_received: bool = True
    state: str | None = None
    reason: str | None = None
    is_undecided: bool | None = None
    since: UUID | None = None
    until: UUID | None = None


class NumberLine(NamedTuple):
    """The last message to or from a number."""

    number_hash: bytes
    phone_number: str
    at: datetime
    body: str
    first_name: str | None
    last_name: str | None
