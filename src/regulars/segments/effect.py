"""The smallest difference in spend that a comparison of two groups of customers can show. No I/O.

Net spend per customer over 7 days, one currency at a time, with the pooled variance of both groups: with a small group
and skewed baskets, separate variances would report effects that do not exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final

from regulars.segments.analysis.protocol import SpendPerHead

POWER: Final = 0.80
SIGNIFICANCE: Final = 0.05
# Expected buyers in the smaller group; with fewer, the mean of a group depends on a few baskets.
BUYERS_MIN: Final = 100
# The error that the difference must exceed: not to see one that is not there, and to see one that is.
_ERRORS: Final = NormalDist().inv_cdf(1 - SIGNIFICANCE / 2) + NormalDist().inv_cdf(POWER)


@dataclass(frozen=True, slots=True)
class SmallestEffect:
    """`cents` is None where too few customers buy to show any effect; `mean_cents` is what they spend now."""

    currency: str
    mean_cents: float
    cents: float | None

    @property
    def percent(self) -> float | None:
        """Of what they spend now."""
        return None if self.cents is None or self.mean_cents <= 0 else 100 * self.cents / self.mean_cents


def standard_error(variance: float, first: int, second: int) -> float:
    """Of the difference of the means of two groups of these sizes, with their pooled variance."""
    return sqrt(variance * (1 / first + 1 / second))


def has_enough_buyers(smaller_share: float, buyers: float) -> bool:
    """`smaller_share` is the smaller group's share of both, `buyers` are those of both. The buyers of one group alone
    would depend on the effect that is looked for."""
    return smaller_share * buyers >= BUYERS_MIN


def smallest_effects(
    spend: Sequence[SpendPerHead], *, customers: int, first: int, second: int
) -> tuple[SmallestEffect, ...]:
    """For each currency: the difference that two groups of these sizes show in four of five cases. `spend` is that of
    all `customers`, from whom both groups are drawn."""
    found = []
    for one in spend:
        expected = one.buyers_per_week * min(first, second) / customers if customers else 0
        is_enough = min(first, second) > 0 and has_enough_buyers(1, expected)
        cents = _ERRORS * standard_error(one.variance_cents, first, second) if is_enough else None
        found.append(SmallestEffect(one.currency, one.mean_cents, cents))
    return tuple(found)
