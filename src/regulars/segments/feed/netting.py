"""What a line of a sale counts for: quantities in millionths, and the sign of what came back."""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

MILLION: Final = 1_000_000
_ONE_MILLIONTH: Final = Decimal("0.000001")


def millionths(quantity: float) -> int:
    """A quantity, rounded half-even to six decimals, as an integer."""
    if isinstance(quantity, int):
        return quantity * MILLION
    if quantity.is_integer():
        return int(quantity) * MILLION
    return int(Decimal(repr(quantity)).quantize(_ONE_MILLIONTH, rounding=ROUND_HALF_EVEN) * MILLION)


def sign_of(values: Sequence[int], *, is_return: bool) -> int:
    """By what the values of a sale's lines are multiplied: those of a return that sum below 0 are signed already."""
    return -1 if is_return and sum(values) >= 0 else 1
