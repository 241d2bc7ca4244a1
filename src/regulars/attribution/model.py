"""Touches and windows, the credit of a purchase, and sums of credits. Money is in cents of one currency.

A touch is a text that was sent to a customer, or a click of the customer on a link in it. A window is the time after a
touch in which a purchase is credited to it.
"""

import enum
from bisect import bisect_left
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from operator import attrgetter
from typing import Final, NamedTuple
from uuid import UUID

from regulars.links.origin_kind import OriginKind
from regulars.texts.model import TextState

# Only texts of these origins and in these states are touches.
TOUCHING_ORIGINS: Final = (OriginKind.CAMPAIGN, OriginKind.JOURNEY, OriginKind.PERSON)
TOUCHING_STATES: Final = (TextState.SENT, TextState.DELIVERED, TextState.UNKNOWN)
# A credit is final (frozen) this long after its text: 30 days for a purchase, and 30 more for a return.
FROZEN_AFTER: Final = timedelta(days=60)
CLICK_DAYS_MAX: Final = 30
DELIVERY_HOURS_MAX: Final = 168
LIFT_DAYS_MAX: Final = 30


class TouchKind(enum.StrEnum):
    CLICK = "click"
    DELIVERY = "delivery"


class Windows(NamedTuple):
    """How long after a touch a purchase is credited to it, and for how many days after the last text lift (the extra
    sales that texts brought) is measured."""

    click_days: int = 5
    delivery_hours: int = 24
    lift_days: int = 7

    def of(self, kind: TouchKind) -> timedelta:
        return timedelta(days=self.click_days) if kind is TouchKind.CLICK else timedelta(hours=self.delivery_hours)


# The id of an origin without an id: a person, or an unknown journey.
NO_ID: Final = UUID(int=0)


# A lookup here takes a fifth of the time of `OriginKind(value)`, and a page reads thousands of rows.
ORIGIN_KINDS: Final = {kind.value: kind for kind in OriginKind}


class Origin(NamedTuple):
    """What sent a text: a campaign, a journey with its step, or a person."""

    kind: OriginKind
    id: UUID = NO_ID
    step: str = ""


class Touch(NamedTuple):
    """A text that was sent, or the customer's click on its link; `at` is the time of sending or of the click."""

    at: datetime
    kind: TouchKind
    text_id: UUID
    sent_at: datetime
    origin: Origin


class Touches:
    """The touches of one customer."""

    def __init__(self, touches: Iterable[Touch]) -> None:
        by_kind: dict[TouchKind, list[Touch]] = {kind: [] for kind in TouchKind}
        for touch in touches:
            by_kind[touch.kind].append(touch)
        self._sorted = {kind: sorted(unsorted, key=attrgetter("at", "text_id")) for kind, unsorted in by_kind.items()}

    def choose(self, at: datetime, windows: Windows) -> Touch | None:
        """The touch that a purchase at this time is credited to: the latest click whose window is still open, else the
        latest such text. A text whose credits are final at this time gets no credit, even if it was clicked later."""
        for kind in (TouchKind.CLICK, TouchKind.DELIVERY):
            touches = self._sorted[kind]
            # How many touches of this kind are before the purchase.
            before = bisect_left(touches, at, key=attrgetter("at"))
            for index in range(before - 1, -1, -1):
                if at - touches[index].at > windows.of(kind):
                    break
                if not is_frozen(touches[index].sent_at, at):
                    return touches[index]
        return None


class Credit(NamedTuple):
    """A purchase that is credited to a text: a row of `attributed_sales`."""

    sale_id: UUID
    # None after the person's data was erased.
    profile_id: UUID | None
    text_id: UUID | None
    touch: str
    touched_at: datetime
    # The window that applied when the credit was computed.
    window_hours: int
    # When the text was sent: the time, and the day in the organization's time zone.
    sent_at: datetime
    day: date
    origin_kind: str
    origin_id: UUID
    step: str
    occurred_at: datetime
    currency: str
    gross_cents: int
    net_cents: int
    # Returns in the 30 days after the purchase that match no purchase; shown separately, and never subtracted.
    unmatched_cents: int

    @property
    def origin(self) -> Origin:
        return Origin(OriginKind(self.origin_kind), self.origin_id, self.step)

    def is_frozen(self, now: datetime) -> bool:
        """Whether the credit is final and cannot change any more."""
        return self.profile_id is None or is_frozen(self.sent_at, now)


def is_frozen(sent_at: datetime, now: datetime) -> bool:
    return now - sent_at >= FROZEN_AFTER


class Attributed(NamedTuple):
    """Sums of credits in one currency; `tickets` is the number of credited purchases."""

    tickets: int = 0
    gross_cents: int = 0
    net_cents: int = 0
    unmatched_cents: int = 0

    def __add__(self, other: object) -> "Attributed":
        if not isinstance(other, Attributed):
            return NotImplemented
        return Attributed(
            self.tickets + other.tickets,
            self.gross_cents + other.gross_cents,
            self.net_cents + other.net_cents,
            self.unmatched_cents + other.unmatched_cents,
        )
