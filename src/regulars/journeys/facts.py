"""Facts of journeys, for rooms above."""

from datetime import date
from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class HoldoutMonthBegun(Fact, frozen=True):
    """The first customer of a month passed a split that holds customers out. It may be recorded more than once."""

    topic: ClassVar[str] = "journeys.holdout_month"

    journey_id: UUID
    step: str
    # Its first day.
    month: date
    # The share of the customers that is held out.
    percent: int
    # So many days after the split the last text of the others leaves.
    texts_within_days: int
