"""Exact arithmetic on arrays: adds up numbers by index, and parses and compares decimals.

A number that does not fit into 64 bits is split into two arrays: how often it contains a unit, and the remainder. The
unit of sums is 2^32, the unit of decimals is 1 (the remainder counts 10^-18). So one function compares both.
"""

import math
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from regulars.columns.engine.encoding import Array
from regulars.columns.engine.threads import map_in_threads
from regulars.conditions.tree import ValueComparison

# Sums that cannot exceed this are computed in 64 bits.
SUM_MAX: Final = 2**63 - 1
# Doubles represent integers exactly up to this.
DOUBLE_MAX: Final = 2**53
# The number of digits before, and after, the decimal point that fit into 64 bits.
DIGITS: Final = 18
# The number 1 in units of 10^-18.
_ONE: Final = 10**DIGITS
_LOW_UNIT: Final = 1 << 32
# A decimal whose whole number and fraction fit into 64 bits each.
_USUAL: Final = rf"^(-?)([0-9]{{1,{DIGITS}}})(?:\.([0-9]{{1,{DIGITS}}}))?$"


# Integers and None; or, for integers beyond 64 bits, their quotients by a unit and their remainders.
SplitIntegers = tuple[Array, Array | None]


def sum_by_index(values: Collection[tuple[Array, Array]], size: int) -> SplitIntegers:
    """Add up the values of each index; `values` has pairs of arrays (indexes, values).

    Adding into an array takes a fifteenth of the time that grouping takes. The largest value and the number of rows
    bound every sum; if it can exceed 64 bits, the high and low 32 bits are summed separately.
    """
    values = [(indexes, value) for indexes, value in values if value.size]
    if sum(sum_bound(value) for _, value in values) <= SUM_MAX:
        return _add_up(values, size, lambda value: value), None
    return _carry(
        _add_up(values, size, lambda value: value // _LOW_UNIT),
        _add_up(values, size, lambda value: value % _LOW_UNIT),
        _LOW_UNIT,
    )


class Summands(NamedTuple):
    """Values that are added up at their indexes, and a factor for all of them."""

    indexes: Array
    values: Array
    factor: int = 1


def sum_bound(values: Array) -> int:
    """An upper bound for the absolute value of each sum of some of the values."""
    return values.size * max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0


def sum_groups(summands: Collection[Summands], size: int) -> Array:
    """Add up the values at each index, as 64-bit integers; raise OverflowError if a sum does not fit.

    Adding doubles is exact for sums of usual size, and faster than adding integers.
    """
    summands = [batch for batch in summands if batch.values.size]
    if sum(sum_bound(batch.values) * batch.factor for batch in summands) <= DOUBLE_MAX:
        sums = np.zeros(size, np.float64)
        for batch in summands:
            if batch.values.size < size:
                np.add.at(sums, batch.indexes, batch.values.astype(np.float64) * batch.factor)
        for sums_of_batch in map_in_threads(
            # `bincount` converts other integer types more slowly.
            lambda batch: np.bincount(batch.indexes.astype(np.intp, copy=False), batch.values, size) * batch.factor,
            [batch for batch in summands if batch.values.size >= size],
        ):
            sums += sums_of_batch
        return sums.astype(np.int64)
    exact = [(batch.indexes, batch.values.astype(np.int64) * batch.factor) for batch in summands]
    high, low = sum_by_index(exact, size)
    if low is None:
        return high
    if high.min() < -_LOW_UNIT // 2 or high.max() >= _LOW_UNIT // 2:
        raise OverflowError("a sum exceeds 64 bits")
    return high * _LOW_UNIT + low


def are_within(numbers: SplitIntegers, low: int | None, high: int | None) -> Array:
    """A mask of the numbers between two bounds, both included; None means no bound."""
    within = _are_below(numbers, None if high is None else high + 1, _LOW_UNIT)
    return within if low is None else within & ~_are_below(numbers, low, _LOW_UNIT)


def _add_up(values: Collection[tuple[Array, Array]], size: int, convert: Callable[[Array], Array]) -> Array:
    sums = np.zeros(size, np.int64)
    for indexes, value in values:
        np.add.at(sums, indexes, convert(value.astype(np.int64)))
    return sums


def _carry(whole: Array, remainder: Array, unit: int) -> tuple[Array, Array]:
    """Carry units from the remainder to the whole numbers, so that the remainder is at least 0 and below the unit."""
    carried = remainder // unit
    return whole + carried, remainder - carried * unit


def _are_below(numbers: SplitIntegers, bound: int | None, unit: int) -> Array:
    whole, remainder = numbers
    if bound is None:
        return np.ones(whole.size, bool)
    if remainder is None:
        return whole < bound
    high, low = divmod(bound, unit)
    below: Array = (whole < high) | ((whole == high) & (remainder < low))
    return below


class Numbers:
    """Decimals in insertion order, so that appending is cheap.

    Each is a whole number and a fraction in units of 10^-18. A comparison with any decimal is a comparison with the
    nearest multiple of that unit.
    """

    def __init__(self) -> None:
        self._whole = np.zeros(0, np.int64)
        self._fraction = np.zeros(0, np.int64)
        self.is_parsable = np.zeros(0, bool)
        # Decimals with more than 18 digits before or after the point, as text, by their index.
        self._long: dict[int, str] = {}

    @property
    def nbytes(self) -> int:
        return self._whole.nbytes + self._fraction.nbytes + self.is_parsable.nbytes + 200 * len(self._long)

    def add(self, values: Sequence[str], is_number: Callable[[str], bool]) -> None:
        """Parse and append the values; `is_number` decides whether a value with more digits or spaces is a number."""
        groups = pl.DataFrame({"text": pl.Series(values, dtype=pl.String)}).select(
            pl.col("text").str.extract_groups(_USUAL).struct.rename_fields(["minus", "whole", "remainder"])
        )
        parts = groups.unnest("text").select(
            sign=pl.when(pl.col("minus") == "-").then(-1).otherwise(1).cast(pl.Int64),
            whole=pl.col("whole").cast(pl.Int64),
            remainder=pl.col("remainder").fill_null("").str.pad_end(DIGITS, "0").cast(pl.Int64),
        )
        usual = parts["whole"].is_not_null().to_numpy()
        old_size = self.is_parsable.size
        unusual = np.flatnonzero(~usual).tolist()
        self._long |= {old_size + index: values[index] for index in unusual if is_number(values[index])}
        sign = parts["sign"].to_numpy()
        whole, remainder = _carry(
            sign * parts["whole"].fill_null(0).to_numpy(), sign * parts["remainder"].to_numpy(), _ONE
        )
        self._whole = np.concatenate((self._whole, whole))
        self._fraction = np.concatenate((self._fraction, remainder))
        self.is_parsable = np.concatenate((self.is_parsable, usual))
        self.is_parsable[[index for index in self._long if index >= old_size]] = True

    def compare(self, condition: ValueComparison, test: Callable[[str], bool | None]) -> Array:
        """For each number whether the comparison is true; `test` decides for decimals with too many digits."""
        first, end, is_within = _range_of(condition)
        numbers = self._whole, self._fraction
        holds: Array = (~_are_below(numbers, first, _ONE) & _are_below(numbers, end, _ONE)) == is_within
        for index, text in self._long.items():
            holds[index] = bool(test(text))
        return holds


def _range_of(condition: ValueComparison) -> tuple[int, int | None, bool]:
    """The range of matching numbers in units of 10^-18, the end excluded; with False, the numbers outside it match."""
    low, high = condition.values if condition.comparison == "between" else (condition.value or "0",) * 2
    # The first unit that is not below the bound, and the first above it; they are equal if no unit equals the bound.
    from_low, above_low = math.ceil(_in_units(low)), math.floor(_in_units(low)) + 1
    match condition.comparison:
        case "between":
            return from_low, math.floor(_in_units(high)) + 1, True
        case "is" | "is_not":
            return from_low, above_low, condition.comparison == "is"
        case "less" | "at_least":
            return from_low, None, condition.comparison == "at_least"
        case _:
            return above_low, None, condition.comparison == "more"


def _in_units(number: str) -> Fraction:
    return Fraction(Decimal(number.strip())) * _ONE
