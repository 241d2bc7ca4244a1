"""What a text is: its origin, its states, and why it was skipped. No I/O."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from regulars.messaging.rules import WAIT_MAX


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


def moves_forward(before: State, after: State) -> bool:
    return _ORDER[after] > _ORDER[before]
