"""Sums of two compared groups of customers, and what customers spend in a week. No I/O."""

import msgspec

from regulars.sales.model import Currency


class WeeklySpend(msgspec.Struct, frozen=True):
    """The net spend of one customer in one week: mean and variance over the 52 weeks before today and all customers,
    those without a sale included. `buyers` is the number of customers who bought in this currency in these weeks,
    `buyers_per_week` the average number in one week."""

    currency: Currency
    buyers: int
    mean_cents: float
    variance_cents: float
    buyers_per_week: float = 0.0


class ArmSums(msgspec.Struct, frozen=True):
    """Sums over the customers of one group: what they spent in the window, and before it. The spend in the window is
    its purchases minus the returns matched to them; the spend before it is purchases minus returns. Sums of squares and
    of products of spends are floats, because they need not be exact."""

    people: int = 0
    # Customers who bought in the window.
    buyers: int = 0
    spend_cents: int = 0
    spend_squares: float = 0.0
    before_cents: int = 0
    before_squares: float = 0.0
    # The sum of each customer's spend in the window times the spend before it.
    products: float = 0.0

    def __add__(self, other: "ArmSums") -> "ArmSums":
        # Written field by field for speed, since a page compares hundreds of groups.
        return ArmSums(
            self.people + other.people,
            self.buyers + other.buyers,
            self.spend_cents + other.spend_cents,
            self.spend_squares + other.spend_squares,
            self.before_cents + other.before_cents,
            self.before_squares + other.before_squares,
            self.products + other.products,
        )
