"""The numbers of a campaign that users confirm: its recipients, and its cost by currency."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

# Amounts by currency.
Cost = Mapping[str, Decimal]


def write_cost(cost: Cost | None) -> str | None:
    return None if cost is None else msgspec.json.encode(cost).decode()


def read_cost(stored: str | None) -> Cost | None:
    """The stored cost; None if no cost was confirmed."""
    return None if stored is None else msgspec.json.decode(stored, type=dict[str, Decimal])


class Question(msgspec.Struct, frozen=True):
    """Asks a user to confirm the numbers of a campaign at its start, because they exceed the confirmed numbers."""

    recipients: int
    cost: dict[str, Decimal]


def read_question(stored: str | None) -> Question | None:
    return None if stored is None else msgspec.json.decode(stored, type=Question)
