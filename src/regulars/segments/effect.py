"""The effect of texts on the spend of customers: what a comparison of two groups shows, and the smallest effect that it
can show before anything is sent. No I/O.

Net spend per customer, one currency at a time, with the pooled variance of both groups: with a small group and skewed
baskets, separate variances would report effects that do not exist.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

from regulars.segments.analysis.protocol import SpendPerHead
from regulars.segments.analysis.questions import ArmSums

POWER: Final = 0.80
SIGNIFICANCE: Final = 0.05
# Expected buyers in the smaller group; with fewer, the mean of a group depends on a few baskets.
BUYERS_MIN: Final = 100
# A smaller probability of the sizes of both groups means that customers were not assigned by chance alone.
SAMPLE_RATIO_P_MIN: Final = 0.001
_NORMAL: Final = NormalDist()
# Half of a 95 % interval, in standard errors.
HALF_INTERVAL: Final = _NORMAL.inv_cdf(1 - SIGNIFICANCE / 2)


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
        cents = None
        if is_enough:
            # It must exceed two errors: to see a difference that is not there, and not to see one that is.
            cents = (HALF_INTERVAL + _NORMAL.inv_cdf(POWER)) * standard_error(one.variance_cents, first, second)
        found.append(SmallestEffect(one.currency, one.mean_cents, cents))
    return tuple(found)


def power_of(effect: float, error: float) -> float:
    """How often an interval excludes 0, where the true difference is `effect` and has this standard error."""
    return _NORMAL.cdf(effect / error - HALF_INTERVAL) + _NORMAL.cdf(-effect / error - HALF_INTERVAL)


class Estimate(NamedTuple):
    """An estimated number with its variance."""

    value: float
    variance: float

    @property
    def low(self) -> float:
        return self.value - HALF_INTERVAL * sqrt(self.variance)

    @property
    def high(self) -> float:
        return self.value + HALF_INTERVAL * sqrt(self.variance)

    @property
    def is_shown(self) -> bool:
        """Whether the 95 % interval excludes 0."""
        return self.low > 0 or self.high < 0

    def times(self, factor: float) -> "Estimate":
        return Estimate(self.value * factor, self.variance * factor**2)


def add_up(estimates: Iterable[Estimate]) -> Estimate:
    """Of independent groups of customers: values and variances are added. Weights by inverse variance would be biased,
    because the variance of money grows with its mean."""
    values = list(estimates)
    return Estimate(sum(it.value for it in values), sum(it.variance for it in values))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What customers who were to be texted spent more than those held out, per head in cents. `adjusted` is the
    verdict; `raw` and `buyers`, the difference of the shares of buyers, are diagnostics."""

    treated: ArmSums
    held_out: ArmSums
    adjusted: Estimate
    raw: Estimate
    buyers: Estimate

    @property
    def extra_cents(self) -> Estimate:
        """Of all customers who were to be texted."""
        return self.adjusted.times(self.treated.people)


def compare(treated: ArmSums, held_out: ArmSums) -> Comparison | None:
    """None where too few customers bought. The spend is adjusted by what the same customers spent before (CUPED): with
    one slope for both groups, so that the adjustment favours neither."""
    people, buyers = treated.people + held_out.people, treated.buyers + held_out.buyers
    smaller = min(treated.people, held_out.people)
    if not smaller or not has_enough_buyers(smaller / people, buyers):
        return None
    slope = slope_of(treated, held_out)
    before = treated.before_cents / treated.people - held_out.before_cents / held_out.people
    raw = treated.spend_cents / treated.people - held_out.spend_cents / held_out.people
    share = buyers / people
    return Comparison(
        treated,
        held_out,
        adjusted=Estimate(raw - slope * before, _variance(treated, held_out, slope)),
        raw=Estimate(raw, _variance(treated, held_out, 0.0)),
        buyers=Estimate(
            treated.buyers / treated.people - held_out.buyers / held_out.people,
            standard_error(share * (1 - share), treated.people, held_out.people) ** 2,
        ),
    )


def slope_of(treated: ArmSums, held_out: ArmSums) -> float:
    """By how much customers who spent a cent more before spent more in the window, over both groups together."""
    whole = _centre(treated + held_out)
    return whole.products / whole.before_squares if whole.before_squares > 0 else 0.0


def sample_ratio_p(treated: int, held_out: int, *, held_out_share: float) -> float:
    """How probable sizes are that differ at least as much from this share."""
    people = treated + held_out
    if not people or not 0 < held_out_share < 1:
        return 1.0
    error = sqrt(people * held_out_share * (1 - held_out_share))
    return erfc(abs(held_out - people * held_out_share) / error / sqrt(2))


class _Centred(NamedTuple):
    """Sums of squares and products of the differences from the means."""

    spend_squares: float
    before_squares: float
    products: float


def _centre(arm: ArmSums) -> _Centred:
    people = max(1, arm.people)
    spend, before = arm.spend_cents / people, arm.before_cents / people
    return _Centred(
        arm.spend_squares - spend * arm.spend_cents,
        arm.before_squares - before * arm.before_cents,
        arm.products - spend * arm.before_cents,
    )


def _variance(treated: ArmSums, held_out: ArmSums, slope: float) -> float:
    """Of the difference of the means of the spend that is adjusted with this slope."""
    squares = 0.0
    for arm in (treated, held_out):
        centred = _centre(arm)
        squares += centred.spend_squares - 2 * slope * centred.products + slope**2 * centred.before_squares
    pooled = max(0.0, squares) / max(1, treated.people + held_out.people - 2)
    return standard_error(pooled, treated.people, held_out.people) ** 2
