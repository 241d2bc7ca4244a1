"""The comparison of two groups, against plain formulas over the values of each customer and against tables."""

import random
import sys
from math import isclose, sqrt
from pathlib import Path
from statistics import correlation, fmean, pvariance

import pytest

from regulars.experiments.effect import (
    EffectEstimate,
    add_up,
    compare,
    has_enough_buyers,
    power_of,
    sample_ratio_p,
    slope_of,
)
from regulars.experiments.sums import ArmSums

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import aa  # the folder of the benchmark has just been made importable


def people(chance: random.Random, count: int, *, buyers: float = 0.3, extra: float = 1.0) -> list[tuple[int, int]]:
    """What each spent in the window, and before it."""
    made = []
    for _ in range(count):
        before = round(chance.lognormvariate(8, 1)) if chance.random() < 0.7 else 0
        spend = round(extra * (0.2 * before + chance.lognormvariate(7, 1))) if chance.random() < buyers else 0
        made.append((spend, before))
    return made


def sums(values: list[tuple[int, int]]) -> ArmSums:
    return ArmSums(
        len(values),
        sum(spend > 0 for spend, _ in values),
        sum(spend for spend, _ in values),
        float(sum(spend**2 for spend, _ in values)),
        sum(before for _, before in values),
        float(sum(before**2 for _, before in values)),
        float(sum(spend * before for spend, before in values)),
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_verdict_from_sums_is_that_from_the_values_of_each_customer(seed):
    chance = random.Random(seed)
    treated, held_out = people(chance, 1500, extra=1.2), people(chance, 500)
    both = treated + held_out
    spends, befores = [spend for spend, _ in both], [before for _, before in both]
    slope = correlation(spends, befores) * sqrt(pvariance(spends) / pvariance(befores))
    adjusted = [[spend - slope * before for spend, before in group] for group in (treated, held_out)]
    pooled = sum(pvariance(group) * len(group) for group in adjusted) / (len(both) - 2)

    found = compare(sums(treated), sums(held_out))

    assert found is not None
    assert isclose(slope_of(sums(treated), sums(held_out)), slope)
    assert isclose(found.adjusted.value, fmean(adjusted[0]) - fmean(adjusted[1]))
    assert isclose(found.adjusted.variance, pooled * (1 / 1500 + 1 / 500))
    assert isclose(found.raw.value, fmean(it[0] for it in treated) - fmean(it[0] for it in held_out))
    assert found.adjusted.variance < found.raw.variance
    assert isclose(found.adjusted.high - found.adjusted.low, 2 * 1.959964 * sqrt(found.adjusted.variance), rel_tol=1e-6)
    assert isclose(found.extra_cents.value, 1500 * found.adjusted.value)
    assert isclose(found.extra_cents.low, 1500 * found.adjusted.low)


def test_without_earlier_spend_the_verdict_is_the_raw_difference():
    arms = [ArmSums(1000, 300, 300_000, 6e8), ArmSums(1000, 200, 200_000, 4e8)]

    found = compare(*arms)

    assert found is not None
    assert found.adjusted == found.raw
    assert found.raw.value == 100
    assert isclose(found.buyers.value, 0.1)
    # (300² + 200²)/1000 below the sums of squares, over 1,998, times 2/1,000.
    assert isclose(found.raw.variance, (6e8 - 9e7 + 4e8 - 4e7) / 1998 / 500)


def test_it_is_silent_where_the_smaller_group_expects_under_100_buyers():
    treated = ArmSums(9_000, 999, 10_000, 1e6)
    assert compare(treated, ArmSums(1_000, 1, 10, 100.0)) is not None
    assert compare(treated, ArmSums(1_000, 0, 0, 0.0)) is None
    assert compare(treated, ArmSums()) is None
    assert compare(ArmSums(), ArmSums()) is None
    assert has_enough_buyers(0.05, 2_000)
    assert not has_enough_buyers(0.05, 1_999)


def test_extras_of_several_campaigns_are_added_with_their_variances():
    total = add_up([EffectEstimate(300.0, 90.0), EffectEstimate(-100.0, 10.0)])
    assert total == EffectEstimate(200.0, 100.0)
    assert total.is_shown
    assert isclose(total.low, 200 - 19.59964, rel_tol=1e-6)
    assert not EffectEstimate(1.0, 1.0).is_shown
    assert EffectEstimate(-3.0, 1.0).is_shown


def test_the_probability_of_the_sizes_is_that_of_the_tables():
    # Chi-square with one degree of freedom: 3.841 at 5 %, 10.828 at 0.1 %.
    error = sqrt(10_000 * 0.1 * 0.9)
    assert isclose(sample_ratio_p(9_000, 1_000, held_out_share=0.1), 1.0)
    for square, probability in ((3.841459, 0.05), (10.827566, 0.001)):
        held_out = 1_000 + error * sqrt(square)
        assert isclose(sample_ratio_p(10_000 - held_out, held_out, held_out_share=0.1), probability, rel_tol=1e-5)
    assert sample_ratio_p(0, 0, held_out_share=0.1) == 1.0


def test_the_power_is_80_percent_at_the_smallest_effect_and_5_percent_without_one():
    assert isclose(power_of(2.801585, 1.0), 0.8, rel_tol=1e-4)
    assert isclose(power_of(0.0, 1.0), 0.05, rel_tol=1e-9)


def test_a_holdout_of_five_percent_shows_no_effect_that_is_not_there():
    """A sample of `bench/aa.py`, with bounds so wide that chance passes them once in a million."""
    cell = aa.run_cell(0.05, 40_000, runs=300)
    assert cell.too_few == 0
    assert cell.share(cell.covered) > 0.88
    assert cell.share(cell.above) < 0.09
    assert cell.share(cell.below) < 0.09


def test_a_planted_lift_is_detected_as_often_as_computed():
    cell = aa.run_cell(0.5, 40_000, runs=300, lift=0.2)
    assert 0.5 < cell.power < 0.99
    assert abs(cell.share(cell.above) - cell.power) < 0.12
    assert cell.share(cell.covered) > 0.88
