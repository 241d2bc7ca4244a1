"""Compute the cost of texts: the SMS parts (segments) per country times the price of a part, by currency. No I/O."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from regulars.texts.request import compose
from regulars.texts.settings.model import Price
from regulars.texts.settings.store import Texting


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Amounts per currency, largest first, and the number of parts to countries without a price."""

    amounts: Mapping[str, Decimal] = field(default_factory=dict)
    parts_without_price: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return not self.parts_without_price

    @property
    def known_amounts(self) -> Mapping[str, Decimal] | None:
        """The amounts if they are the whole cost; else None, for which no limit can be checked."""
        return self.amounts if self.is_complete else None


def estimate(parts_by_country: Mapping[str, int], prices: Mapping[str, Price]) -> CostEstimate:
    """The cost of the parts. Parts to a country without a price are reported separately."""
    amounts: dict[str, Decimal] = defaultdict(Decimal)
    without_price: dict[str, int] = {}
    for country, parts in parts_by_country.items():
        price = prices.get(country)
        if price is not None:
            amounts[price.currency] += parts * price.amount
        elif parts:
            without_price[country] = parts
    largest_first = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    return CostEstimate(dict(largest_first), without_price)


class TextCost(NamedTuple):
    """The cost of one text in a country."""

    country: str
    parts: int
    amount: Decimal
    currency: str


def cost_by_country(text: str, texting: Texting) -> list[TextCost]:
    """The cost in each country that has a price. The number of parts differs between countries, because each country
    has its own opt-out notice at the end of the text."""
    costs = []
    for country, price in sorted(texting.settings.prices.items()):
        parts = compose(text, texting, notice=texting.opt_out_notice_of(country)).measured.parts
        costs.append(TextCost(country, parts, parts * price.amount, price.currency))
    return costs
