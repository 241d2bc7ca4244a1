"""The sign of what lines of a sale count for."""

from collections.abc import Sequence


def sign_of(values: Sequence[int], *, is_return: bool) -> int:
    """By what the values of a sale's lines are multiplied: those of a return that sum below 0 are signed already."""
    return -1 if is_return and sum(values) >= 0 else 1
