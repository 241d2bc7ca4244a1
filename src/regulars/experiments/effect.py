"""Statistics of the effect of texts on the spend of customers, comparing texted with held-out customers. No I/O.

Before a campaign it computes the smallest effect that the comparison can show, and afterwards the measured effect. The
compared value is the net spend per customer, in one currency at a time, with the pooled variance of both groups: if one
group is small and few customers spend a lot, separate variances would show effects that do not exist.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import erfc, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

from regulars.experiments.sums import ArmSums, WeeklySpend

POWER: Final = 0.80
SIGNIFICANCE: Final = 0.05
# Expected buyers in the smaller group; with fewer, its mean depends on a few large purchases.
BUYERS_MIN: Final = 100
# If the group sizes are less probable than this, the random assignment of customers to groups went wrong.
SAMPLE_RATIO_P_MIN: Final = 0.001
_NORMAL: Final = NormalDist()
# From the middle to the end of a 95 % interval, in standard errors.
HALF_INTERVAL: Final = _NORMAL.inv_cdf(1 - SIGNIFICANCE / 2)


@dataclass(frozen=True, slots=True)
class SmallestEffect:
    """The smallest effect that a comparison can show, in cents per customer; None if too few customers buy to show any
    effect. `mean_cents` is what a customer spends now."""

    currency: str
    mean_cents: float
    cents: float | None

    @property
    def percent(self) -> float | None:
        """The smallest effect in percent of what a customer spends now."""
        return None if self.cents is None or self.mean_cents <= 0 else 100 * self.cents / self.mean_cents


def standard_error(variance: float, first_size: int, second_size: int) -> float:
    """The standard error of the difference between the means of two groups of these sizes, from their pooled
    variance."""
    return sqrt(variance * (1 / first_size + 1 / second_size))


def has_enough_buyers(smaller_share: float, buyers: float) -> bool:
    """Whether the smaller group, which is this share of all customers, has enough of all `buyers` on average. Its
    actual number of buyers is not used, because it depends on the effect that is measured."""
    return smaller_share * buyers >= BUYERS_MIN


def smallest_effects(
    spend: Sequence[WeeklySpend], *, customers: int, first: int, second: int
) -> tuple[SmallestEffect, ...]:
    """For each currency, the difference that a comparison of groups of the sizes `first` and `second` shows with a
    probability of 80 %. `spend` is the spend of all `customers`, from whom both groups are drawn."""
    effects = []
    for of_currency in spend:
        expected = of_currency.buyers_per_week * min(first, second) / customers if customers else 0
        is_enough = min(first, second) > 0 and has_enough_buyers(1, expected)
        cents = None
        if is_enough:
            # One margin is against showing a difference that does not exist, one against missing a real difference.
            cents = (HALF_INTERVAL + _NORMAL.inv_cdf(POWER)) * standard_error(of_currency.variance_cents, first, second)
        effects.append(SmallestEffect(of_currency.currency, of_currency.mean_cents, cents))
    return tuple(effects)


def power_of(effect: float, error: float) -> float:
    """The probability that the 95 % interval excludes 0, if the true difference is `effect` with this standard
    error."""
    return _NORMAL.cdf(effect / error - HALF_INTERVAL) + _NORMAL.cdf(-effect / error - HALF_INTERVAL)


class EffectEstimate(NamedTuple):
    """An estimated number with its variance; `low` and `high` are the ends of its 95 % interval."""

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

    def times(self, factor: float) -> "EffectEstimate":
        return EffectEstimate(self.value * factor, self.variance * factor**2)


def add_up(estimates: Iterable[EffectEstimate]) -> EffectEstimate:
    """Add up estimates for independent groups of customers, without weights: weights by inverse variance would be
    biased, because the variance of money grows with its mean."""
    values = list(estimates)
    return EffectEstimate(sum(estimate.value for estimate in values), sum(estimate.variance for estimate in values))


@dataclass(frozen=True, slots=True)
class LiftComparison:
    """How much more treated customers, who were meant to be texted, spent than held-out customers: per customer, in
    cents. `adjusted` is the result; `raw` and `buyers` are for diagnosis."""

    treated: ArmSums
    held_out: ArmSums
    adjusted: EffectEstimate

    @property
    def raw(self) -> EffectEstimate:
        """The difference without the adjustment by earlier spend."""
        return _difference(self.treated, self.held_out, slope=0.0)

    @property
    def buyers(self) -> EffectEstimate:
        """The difference between the two groups in the share of customers who bought."""
        treated, held_out = self.treated, self.held_out
        pooled_share = (treated.buyers + held_out.buyers) / (treated.people + held_out.people)
        error = standard_error(pooled_share * (1 - pooled_share), treated.people, held_out.people)
        return EffectEstimate(treated.buyers / treated.people - held_out.buyers / held_out.people, error**2)

    @property
    def extra_cents(self) -> EffectEstimate:
        """The extra spend of all treated customers."""
        return self.adjusted.times(self.treated.people)


# Cached, because a page compares hundreds of groups, and the sums of a final result never change.
@lru_cache(maxsize=4096)
def compare(treated: ArmSums, held_out: ArmSums) -> LiftComparison | None:
    """Compare both groups; None if too few customers bought. The spend is adjusted by what the same customers spent
    before (CUPED), with one slope for both groups, so that the adjustment favours neither."""
    people, buyers = treated.people + held_out.people, treated.buyers + held_out.buyers
    smaller = min(treated.people, held_out.people)
    if not smaller or not has_enough_buyers(smaller / people, buyers):
        return None
    return LiftComparison(treated, held_out, _difference(treated, held_out, slope=slope_of(treated, held_out)))


def _difference(treated: ArmSums, held_out: ArmSums, *, slope: float) -> EffectEstimate:
    """The difference of the spend per customer, adjusted with this slope."""
    spend = treated.spend_cents / treated.people - held_out.spend_cents / held_out.people
    before = treated.before_cents / treated.people - held_out.before_cents / held_out.people
    return EffectEstimate(spend - slope * before, _variance(treated, held_out, slope))


def slope_of(treated: ArmSums, held_out: ArmSums) -> float:
    """The regression slope over both groups: how much more customers spent in the window for each cent that they spent
    before it."""
    both = _centre_sums(treated + held_out)
    return both.products / both.before_squares if both.before_squares > 0 else 0.0


def sample_ratio_p(treated: int, held_out: int, *, held_out_share: float) -> float:
    """The probability of group sizes that differ at least this much from the expected share."""
    people = treated + held_out
    if not people or not 0 < held_out_share < 1:
        return 1.0
    error = sqrt(people * held_out_share * (1 - held_out_share))
    return erfc(abs(held_out - people * held_out_share) / error / sqrt(2))


class _CentredSums(NamedTuple):
    """Sums of squares and products of the differences from the means."""

    spend_squares: float
    before_squares: float
    products: float


def _centre_sums(group: ArmSums) -> _CentredSums:
    people = max(1, group.people)
    spend, before = group.spend_cents / people, group.before_cents / people
    return _CentredSums(
        group.spend_squares - spend * group.spend_cents,
        group.before_squares - before * group.before_cents,
        group.products - spend * group.before_cents,
    )


def _variance(treated: ArmSums, held_out: ArmSums, slope: float) -> float:
    """The variance of the difference between the means of the spend, adjusted with this slope."""
    squares = 0.0
    for group in (treated, held_out):
        centred = _centre_sums(group)
        squares += centred.spend_squares - 2 * slope * centred.products + slope**2 * centred.before_squares
    # Two degrees of freedom are lost to the two means.
    pooled = max(0.0, squares) / max(1, treated.people + held_out.people - 2)
    return standard_error(pooled, treated.people, held_out.people) ** 2
