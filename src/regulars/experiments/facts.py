"""The events of holdouts (facts), which are recorded for listeners in other packages."""

from datetime import date
from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class HoldoutMonthBegun(Fact, frozen=True):
    """The first customer of a month passed a split step that holds customers out. May be recorded more than once."""

    topic: ClassVar[str] = "journeys.holdout_month"

    journey_id: UUID
    step: str
    # The first day of the month.
    month: date
    # The percentage of customers who are held out.
    percent: int
    # Customers who are not held out get their last text at most this many days after the split.
    texts_within_days: int


class HoldoutQuarterChanged(Fact, frozen=True):
    """The customers who get no texts in a quarter were chosen, or the quarter was ended early. They are compared with
    the other customers from `first_day` to `last_day`."""

    topic: ClassVar[str] = "messaging.holdout_quarter"

    quarter: date
    percent: int
    first_day: date
    last_day: date
