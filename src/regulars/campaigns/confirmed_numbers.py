"""The numbers of a campaign that users confirm: its recipients, and its cost by currency."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from regulars.texts.settings.currencies import is_currency

RECIPIENTS_MAX: Final = 100_000_000
AMOUNT_MAX: Final = 1_000_000_000
# Amounts by currency.
Cost = Mapping[str, Decimal]


def write_cost(cost: Cost | None) -> str | None:
    return None if cost is None else msgspec.json.encode(cost).decode()


def read_cost(stored: str | None) -> Cost | None:
    """The stored cost; None if no cost was confirmed."""
    return None if stored is None else msgspec.json.decode(stored, type=dict[str, Decimal])


class RecipientsAndCost(NamedTuple):
    """Recipients and cost; an unknown cost is None."""

    recipients: int
    cost: Cost | None


def find_cost_fault(cost: Cost | None) -> str | None:
    """Why the amounts cannot be compared with others, as a sentence; None if they can."""
    for currency, amount in (cost or {}).items():
        if not is_currency(currency):
            return f"'{currency}' is not a currency; write three letters such as EUR."
        if not (amount.is_finite() and 0 <= amount <= AMOUNT_MAX):
            return f"An amount is a number from 0 to {AMOUNT_MAX:,}; {currency} has another."
    return None


class Question(msgspec.Struct, frozen=True):
    """Asks a user to confirm the numbers of a campaign at its start, because they exceed the confirmed numbers."""

    recipients: int
    cost: dict[str, Decimal]
    # The etag of the campaign and its segments that were counted; None if an older worker asked.
    counted: str | None = None
    # Whether each country of the texts has a price; without one, the cost is that of the other countries.
    is_cost_known: bool = True

    @property
    def numbers(self) -> RecipientsAndCost:
        return RecipientsAndCost(self.recipients, self.cost if self.is_cost_known else None)


def read_question(stored: str | None) -> Question | None:
    return None if stored is None else msgspec.json.decode(stored, type=Question)
