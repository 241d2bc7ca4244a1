"""The types of texts and replies: a text's origin, its states, and why it was skipped. No I/O."""

from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from regulars.consent.stop_words import Meaning
from regulars.links.origin_kind import OriginKind
from regulars.texts.settings.model import WAIT_MAX


class TextState(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    # The text may or may not have been sent, so it is sent again only if a user decides so.
    UNKNOWN = "unknown"
    SENT = "sent"
    DELIVERED = "delivered"
    FAILED = "failed"
    SKIPPED = "skipped"


# A text changes only to a state with a higher number: a delivery receipt may arrive before our own commit, late, or
# twice.
_STATE_ORDER: Final = {
    TextState.QUEUED: 0,
    TextState.SENDING: 1,
    TextState.UNKNOWN: 2,
    TextState.SENT: 3,
    TextState.DELIVERED: 4,
    TextState.FAILED: 4,
    TextState.SKIPPED: 4,
}


class Priority(IntEnum):
    """Texts with a lower number are sent first. Rows of earlier releases without a priority are PERSONAL."""

    # The responses to STOP and HELP.
    REPLY = 0
    PERSONAL = 1
    CAMPAIGN = 2


# Texts of these origins are exempt from the checks of consent, hours and caps.
EXEMPT_ORIGINS: Final = frozenset({OriginKind.STOP, OriginKind.HELP})
PRIORITIES: Final = {kind: Priority.REPLY if kind in EXEMPT_ORIGINS else Priority.PERSONAL for kind in OriginKind} | {
    OriginKind.CAMPAIGN: Priority.CAMPAIGN
}
# Texts of these origins do not count against the frequency caps.
UNCOUNTED_ORIGINS: Final = EXEMPT_ORIGINS | {OriginKind.TEST}
EXEMPT_EXPIRES_AFTER: Final = timedelta(minutes=5)
EXPIRES_AFTER: Final = WAIT_MAX
# The first answers of users to a customer's message are outside the frequency caps if they are written in this time.
ANSWER_WITHIN: Final = timedelta(hours=72)
ANSWERS_OUTSIDE_CAP_MAX: Final = 5
# Replies with these meanings are keywords: they are processed at once, and there is nothing to answer.
KEYWORD_MEANINGS: Final = frozenset({Meaning.STOP.value, Meaning.START.value, Meaning.HELP.value})


class TextRow(NamedTuple):
    """A row of `texts`."""

    id: UUID
    origin_kind: str
    origin_id: UUID
    # Tells the texts of an origin apart: the id of a journey's step, or of a campaign's recipient, for example.
    step: str
    profile_id: UUID | None
    number_hash: bytes | None
    phone_number: str | None
    body: str
    # The number of SMS parts (segments).
    parts: int
    state: str
    reason: str | None
    # When a worker takes the text; while it is being sent, when the worker's claim ends; while it is set aside for a
    # pause or a hold, when it expires; None in a final state.
    due_at: datetime | None
    expires_at: datetime
    # The number of the latest claim: outcomes and receipts of an earlier claim are ignored.
    attempts: int
    provider: str | None
    provider_id: str | None
    created_at: datetime
    # When a worker took the text to hand it to the provider.
    claimed_at: datetime | None
    # When the text got its final state.
    ended_at: datetime | None
    priority: int = Priority.PERSONAL.value
    # Whether the frequency caps neither limit nor count the text: an answer to a customer's message.
    is_outside_cap: bool = False
    # How many claims were dialled since the text was requested or sent again by a user. The retry schedule reads it.
    tries: int = 0
    # The journey or campaign that requested the text and whose pause stops it; None for other texts, and for those of
    # campaigns of earlier releases.
    document_id: UUID | None = None


class SkipReason(StrEnum):
    """Why a text was skipped, or why it failed."""

    NO_CONSENT = "no_consent"
    # The number belongs to another customer now.
    NOT_LINKED = "not_linked"
    # A reply from the number may be a STOP, and no user has decided about it.
    SUPPRESSED = "suppressed"
    CAP = "cap"
    HOURS = "hours"
    EXPIRED = "expired"
    NO_COUNTRY = "no_country"
    COUNTRY_NOT_SET = "country_not_set"
    SENDER_REFUSED = "sender_refused"
    MISSING_VALUE = "missing_value"
    TOO_LONG = "too_long"
    # The customer left the journey.
    LEFT = "left"
    # The provider refused the text, or could not be reached.
    REFUSED = "refused"
    NOT_REACHED = "not_reached"
    # The provider accepted the text, and reported later that it did not arrive. Releases before this one store the
    # reason "refused" with such texts.
    UNDELIVERED = "undelivered"
    CANCELLED = "cancelled"
    GLOBAL_HOLDOUT = "global_holdout"


# The reasons of failed texts for which the provider does not charge: they never left.
UNCHARGED_REASONS: Final = frozenset({SkipReason.REFUSED.value, SkipReason.NOT_REACHED.value})


def moves_forward(before: TextState, after: TextState) -> bool:
    return _STATE_ORDER[after] > _STATE_ORDER[before]


class ReplyToOrigin(NamedTuple):
    """A reply from a number that an origin had texted, and the step of that text: the id of a journey's step, or of a
    campaign's recipient. `decision` is None until a user or a keyword has decided what happens with the reply."""

    id: UUID
    meaning: str
    decision: str | None
    received_at: datetime
    step: str


class ReplyRow(NamedTuple):
    """A row of `replies`. `decided` is the decision about the reply, of a user or by a keyword, such as `withdrew`; an
    answer decides when the provider has accepted it. `decided_by` is the user who decided. The author of an
    answer is stored with its text."""

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
    # Until when a user must decide about a possible STOP.
    due_at: datetime | None
    received_at: datetime

    @property
    def attempts(self) -> int:
        """Always 0, so that the queue of overdue replies retries a failed decision without end."""
        return 0


class ConversationItem(NamedTuple):
    """One message of the conversation with a number: a text of ours, or a reply."""

    at: datetime
    text: TextRow | None = None
    reply: ReplyRow | None = None


class MessageListItem(NamedTuple):
    """A text of ours or a reply, in a list. `state` is the state of the text or the meaning of the reply; `reason` is
    why the text was skipped, or the decision about the reply."""

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
    """The filters of a list of messages; `since` and `until` are ids, because ids are in the order of time."""

    is_sent: bool = True
    is_received: bool = True
    state: str | None = None
    reason: str | None = None
    is_undecided: bool | None = None
    since: UUID | None = None
    until: UUID | None = None


class LatestMessage(NamedTuple):
    """The latest message to or from a number, and the name of its customer."""

    number_hash: bytes
    phone_number: str
    at: datetime
    body: str
    first_name: str | None
    last_name: str | None
