"""Sums by customer are exact, in 64 bits or beyond."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regulars.columns.engine import numbers
from regulars.columns.engine.numbers import are_within, sum_by_index

CENTS = st.integers(-(2**53), 2**53) | st.integers(-(2**62), 2**62)


def summed(values: list[list[int]]) -> list[int]:
    """The sum of each place, found by bounds that hold for one number alone."""
    pairs = [(np.full(len(it), place, np.int32), np.array(it, np.int64)) for place, it in enumerate(values)]
    sums = sum_by_index(pairs, len(values))
    expected = [sum(it) for it in values]
    for place, number in enumerate(expected):
        assert are_within(sums, number, number)[place]
        assert not are_within(sums, number + 1, None)[place]
        assert not are_within(sums, None, number - 1)[place]
    return expected


@given(st.lists(st.lists(CENTS, max_size=5), min_size=1, max_size=5))
def test_sums_are_those_of_whole_numbers(values):
    summed(values)


@pytest.mark.parametrize(("most", "is_wide"), [(2**63 - 1, False), (2**63, True)])
def test_only_what_may_pass_64_bits_is_summed_in_two_parts(most, is_wide):
    half = most // 2
    pairs = [(np.zeros(1, np.int32), np.array([it], np.int64)) for it in (half, most - half)]
    assert (sum_by_index(pairs, 1)[1] is not None) is is_wide
    assert are_within(sum_by_index(pairs, 1), most, most).tolist() == [True]


def test_small_sums_take_the_way_of_large_ones(monkeypatch):
    monkeypatch.setattr(numbers, "SUM_MAX", -1)
    assert summed([[1, -3], [], [-(2**40), 7]]) == [-2, 0, 7 - 2**40]
