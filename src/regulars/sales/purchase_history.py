"""Summarise the purchase history of a customer for the pages: sums per currency, a chart of the months with a purchase,
and the usual number of days between purchases."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from regulars.kit.clock import in_zone
from regulars.sales.tickets import CustomerTicket
from regulars.sales.totals.model import PerCurrency, Sums, add_up

# Months in the chart: on the page of a customer, and in a list of customers.
MONTHS: Final = 24
LIST_MONTHS: Final = 12
# With purchases on fewer days there is no usual interval.
VISITS_MIN: Final = 3


class Dot(NamedTuple):
    """A month in the chart. Its kind is `on` with a purchase, `back` with only returns, and empty with neither."""

    x: int
    y: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    total: PerCurrency
    first_purchase_at: datetime | None
    last_purchase_at: datetime | None
    # The median of the days between purchases; None with too few purchases.
    usual_days: int | None
    dots: list[Dot]
    months_bought: int
    months_only_returned: int

    def net(self) -> list[tuple[str, int]]:
        return [(currency, sums.net_cents) for currency, sums in self.total.by_net_sales()]

    @property
    def purchases(self) -> int:
        return sum(sums.purchases for sums in self.total.sums.values())


def read_history(tickets: Sequence[CustomerTicket], *, now: datetime, zone: ZoneInfo, months: int = MONTHS) -> History:
    total = add_up((ticket.currency, _sums_of(ticket)) for ticket in tickets)
    bought = sorted(ticket.occurred_at for ticket in tickets if ticket.type == "PURCHASE")
    returned = [ticket.occurred_at for ticket in tickets if ticket.type != "PURCHASE"]
    shown_months = months_back(now.astimezone(zone).date(), months)
    purchase_months = {_month(moment, zone) for moment in bought}
    return_months = {_month(moment, zone) for moment in returned} - purchase_months
    kinds = ["on" if month in purchase_months else "back" if month in return_months else "" for month in shown_months]
    return History(
        total=total,
        first_purchase_at=bought[0] if bought else None,
        last_purchase_at=bought[-1] if bought else None,
        usual_days=_usual_days(bought, zone),
        # One row of dots per year, one dot per month, with 9 units between dots and 11 between rows.
        dots=[Dot(4 + 9 * (n % 12), 5 + 11 * (n // 12), kind) for n, kind in enumerate(kinds)],
        months_bought=kinds.count("on"),
        months_only_returned=kinds.count("back"),
    )


def _sums_of(ticket: CustomerTicket) -> Sums:
    if ticket.type == "PURCHASE":
        return Sums(purchases=1, identified=1, gross_cents=ticket.total_amount_cents)
    return Sums(returns=1, identified=1, returned_cents=ticket.total_amount_cents)


def months_back(last: date, count: int) -> list[tuple[int, int]]:
    """Return the last `count` months up to the month of this day, the oldest first, as (year, month from 0)."""
    number = last.year * 12 + last.month - 1
    return [divmod(number - n, 12) for n in reversed(range(count))]


def _month(moment: datetime, zone: ZoneInfo) -> tuple[int, int]:
    local = in_zone(moment, zone)
    return local.year, local.month - 1


def _usual_days(bought: Sequence[datetime], zone: ZoneInfo) -> int | None:
    days = sorted({in_zone(moment, zone).date() for moment in bought})
    if len(days) < VISITS_MIN:
        return None
    return round(median((later - earlier).days for earlier, later in pairwise(days)))
