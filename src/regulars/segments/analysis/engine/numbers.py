"""Many texts as decimals at once: of the usual length in columns, which are exact, all others one by one."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np
import polars as pl

from regulars.segments.analysis.engine.blobs import Array
from regulars.segments.definition import OfAttribute, OfProperty

# Before and after the point; so many digits fit into 64 bits.
DIGITS: Final = 18
_ONE: Final = 10**DIGITS
_USUAL: Final = rf"^(-?)([0-9]{{1,{DIGITS}}})(?:\.([0-9]{{1,{DIGITS}}}))?$"


class Numbers:
    """Decimals in the order in which they came, which nobody sorts: one more costs what one costs.

    Each is a whole number and a rest in parts of 10^18, and both have its sign. So all that fit are multiples of one
    part, and a comparison with any decimal is one with the multiple next to it.
    """

    def __init__(self) -> None:
        self._whole = np.zeros(0, np.int64)
        self._rest = np.zeros(0, np.int64)
        self.is_readable = np.zeros(0, bool)
        # The places of those that are too long, as text.
        self._long: dict[int, str] = {}

    @property
    def nbytes(self) -> int:
        return self._whole.nbytes + self._rest.nbytes + self.is_readable.nbytes + 200 * len(self._long)

    def add(self, values: Sequence[str], is_number: Callable[[str], bool]) -> None:
        """`is_number` is asked about whatever is not spelled as usual."""
        found = pl.DataFrame({"text": pl.Series(values, dtype=pl.String)}).select(
            pl.col("text").str.extract_groups(_USUAL).struct.rename_fields(["minus", "whole", "rest"])
        )
        parts = found.unnest("text").select(
            sign=pl.when(pl.col("minus") == "-").then(-1).otherwise(1).cast(pl.Int64),
            whole=pl.col("whole").cast(pl.Int64),
            rest=pl.col("rest").fill_null("").str.pad_end(DIGITS, "0").cast(pl.Int64),
        )
        usual = parts["whole"].is_not_null().to_numpy()
        known = self.is_readable.size
        others = np.flatnonzero(~usual).tolist()
        self._long |= {known + place: values[place] for place in others if is_number(values[place])}
        sign = parts["sign"].to_numpy()
        self._whole = np.concatenate((self._whole, sign * parts["whole"].fill_null(0).to_numpy()))
        self._rest = np.concatenate((self._rest, sign * parts["rest"].to_numpy()))
        self.is_readable = np.concatenate((self.is_readable, usual))
        self.is_readable[[place for place in self._long if place >= known]] = True

    def hold(self, asked: OfAttribute | OfProperty, test: Callable[[str], bool | None]) -> Array:
        """Where a comparison holds; `test` is asked about those that are too long."""
        first, end, is_within = _asked(asked)
        held: Array = (~self._below(first) & self._below(end)) == is_within
        for place, text in self._long.items():
            held[place] = bool(test(text))
        return held

    def _below(self, parts: int | None) -> Array:
        """Which are less than so many parts; None is beyond all of them."""
        if parts is None or parts >= _ONE * _ONE:
            return np.ones(self._whole.size, bool)
        if parts <= -_ONE * _ONE:
            return np.zeros(self._whole.size, bool)
        sign = -1 if parts < 0 else 1
        whole, rest = (sign * part for part in divmod(abs(parts), _ONE))
        below: Array = (self._whole < whole) | ((self._whole == whole) & (self._rest < rest))
        return below


def _asked(asked: OfAttribute | OfProperty) -> tuple[int, int | None, bool]:
    """The parts that hold, from the first to before the last; or, where the third is false, all others."""
    low, high = asked.values if asked.comparison == "between" else (asked.value or "0",) * 2
    # The first multiple of a part that is not below a bound, and the first that is above it: the same, if none is it.
    from_low, above_low = math.ceil(_parts(low)), math.floor(_parts(low)) + 1
    match asked.comparison:
        case "between":
            return from_low, math.floor(_parts(high)) + 1, True
        case "is" | "is_not":
            return from_low, above_low, asked.comparison == "is"
        case "less" | "at_least":
            return from_low, None, asked.comparison == "at_least"
        case _:
            return above_low, None, asked.comparison == "more"


def _parts(number: str) -> Fraction:
    return Fraction(Decimal(number)) * _ONE
