"""Quantities as whole numbers, so that sums of them are exact."""

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

MILLION: Final = 1_000_000


def millionths(quantity: float) -> int:
    """A quantity in millionths, half to even."""
    return int((Decimal(repr(quantity)) * MILLION).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))
