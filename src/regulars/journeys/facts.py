"""Facts of journeys, which are events recorded for listeners in other packages."""

from datetime import date
from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class HoldoutMonthBegun(Fact, frozen=True):
    """The first customer of a month passed a split that holds customers out. It may be recorded more than once."""

    topic: ClassVar[str] = "journeys.holdout_month"

    journey_id: UUID
    step: str
    # The first day of the month.
    month: date
    # The share of the customers that is held out.
    percent: int
    # The last text of the customers who are not held out is sent at most this many days after the split.
    texts_within_days: int
