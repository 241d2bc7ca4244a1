"""The rows and rules of the global holdout: each quarter, a random percentage of the customers who may be texted is
held out and gets no campaign texts. No I/O."""

import hashlib
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.texts.errors import SettingRefused

PERCENT_MAX: Final = 20
# How long the customers of a draw are stored after the end of its quarter; the quarter's result is final after 30 days.
RETENTION: Final = timedelta(days=180)
# Customers are hashed into this many buckets; customers in the first buckets are held out.
_BUCKETS: Final = 10_000
_QUARTER_MONTHS: Final = 3


class HoldoutRow(NamedTuple):
    """The setting of an organization; `due_at` is when the next draw starts."""

    percent: int
    # Whether customers who are held out get no texts of journeys either.
    with_journeys: bool
    changed_at: datetime
    changed_by: str | None
    due_at: datetime | None
    attempts: int


class QuarterRow(NamedTuple):
    """The draw of one quarter. From `begins_on`, customers who are held out are compared with customers who get texts;
    `customers` is the size of both groups together."""

    quarter: date
    percent: int
    begins_on: date
    # The last customer of the draw so far, in the order of ids; None before the first page.
    drawn_to: UUID | None
    # When the draw was complete; None while it runs.
    drawn_at: datetime | None
    # When a user ended the holdout before the end of the quarter.
    stopped_at: datetime | None
    customers: int
    held_out: int

    @property
    def ends_on(self) -> date:
        return last_day_of(self.quarter)


class DrawnCustomer(NamedTuple):
    """A customer of the draw, who is held out or gets texts."""

    profile_id: UUID
    is_held_out: bool


def check_percent(percent: int) -> None:
    if not 0 <= percent <= PERCENT_MAX:
        raise SettingRefused(f"A global holdout has 0 to {PERCENT_MAX} % of the customers, and this is {percent} %.")


def quarter_of(day: date) -> date:
    """The first day of the quarter of a day."""
    return date(day.year, (day.month - 1) // _QUARTER_MONTHS * _QUARTER_MONTHS + 1, 1)


def next_quarter(quarter: date) -> date:
    return quarter_of(quarter + timedelta(days=31 * _QUARTER_MONTHS))


def last_day_of(quarter: date) -> date:
    return next_quarter(quarter) - timedelta(days=1)


def first_whole_day(quarter: date, today: date) -> date:
    """The first day to compare after a draw today: the quarter's first day, or tomorrow if it has begun."""
    return quarter if today == quarter else today + timedelta(days=1)


def draw(organization_id: UUID, quarter: date, profile_id: UUID, *, percent: int) -> DrawnCustomer:
    """Whether a customer is held out in a quarter. The result depends only on the arguments, so a draw that is repeated
    after a restore gives the same groups. It is independent of the groups of other quarters, campaigns and journeys."""
    key = b"global holdout" + organization_id.bytes + quarter.isoformat().encode() + profile_id.bytes
    bucket = int.from_bytes(hashlib.sha256(key).digest()[:8], "big") % _BUCKETS
    return DrawnCustomer(profile_id, bucket < percent * _BUCKETS // 100)
