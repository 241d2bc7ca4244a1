"""The global holdout: a share of the customers who may be texted at the start of a quarter. Rows and rules, no I/O."""

import hashlib
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.messaging.errors import SettingRefused

PERCENT_MAX: Final = 20
# How long after the end of a quarter its customers are stored: its result is final after 30 days.
RETENTION: Final = timedelta(days=180)
_SHARES: Final = 10_000
_QUARTER_MONTHS: Final = 3


class HoldoutRow(NamedTuple):
    """The setting; `due_at` is when the next quarter is drawn."""

    percent: int
    with_journeys: bool
    changed_at: datetime
    changed_by: str | None
    due_at: datetime | None
    attempts: int


class QuarterRow(NamedTuple):
    """One draw. `begins_on` is the first whole day of the comparison; `customers` are those of both groups."""

    quarter: date
    percent: int
    begins_on: date
    # The last customer who was drawn; None before the first.
    drawn_to: UUID | None
    # When all were drawn; None while it goes on.
    drawn_at: datetime | None
    stopped_at: datetime | None
    customers: int
    held_out: int

    @property
    def ends_on(self) -> date:
        return last_day_of(self.quarter)


class DrawnCustomer(NamedTuple):
    profile_id: UUID
    is_held_out: bool


def check_percent(percent: int) -> None:
    if not 0 <= percent <= PERCENT_MAX:
        raise SettingRefused(f"A global holdout has 0 to {PERCENT_MAX} % of the customers, and this is {percent} %.")


def quarter_of(day: date) -> date:
    """Its first day."""
    return date(day.year, (day.month - 1) // _QUARTER_MONTHS * _QUARTER_MONTHS + 1, 1)


def next_quarter(quarter: date) -> date:
    return quarter_of(quarter + timedelta(days=31 * _QUARTER_MONTHS))


def last_day_of(quarter: date) -> date:
    return next_quarter(quarter) - timedelta(days=1)


def first_whole_day(quarter: date, today: date) -> date:
    """Of a draw that is made today: a quarter that has begun already is compared from tomorrow on."""
    return quarter if today == quarter else today + timedelta(days=1)


def draw(organization_id: UUID, quarter: date, profile_id: UUID, *, percent: int) -> DrawnCustomer:
    """Always the same for a quarter and a customer, so a draw that is repeated after a restore gives the same groups.
    Another quarter, a campaign and a journey divide the customers independently of it."""
    key = b"global holdout" + organization_id.bytes + quarter.isoformat().encode() + profile_id.bytes
    share = int.from_bytes(hashlib.sha256(key).digest()[:8], "big") % _SHARES
    return DrawnCustomer(profile_id, share < percent * _SHARES // 100)
