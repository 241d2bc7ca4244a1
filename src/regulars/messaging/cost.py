"""What texts cost: parts by country at the price of a part, never added across currencies. No I/O."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from regulars.messaging.request import compose
from regulars.messaging.settings.model import Price
from regulars.messaging.settings.store import Texting


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Amounts per currency, the largest first, and the parts to countries that have no price."""

    amounts: Mapping[str, Decimal] = field(default_factory=dict)
    parts_without_price: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return not self.parts_without_price


def estimate(parts_by_country: Mapping[str, int], prices: Mapping[str, Price]) -> CostEstimate:
    """The cost of the parts; a country without a price is reported and counted in no amount."""
    amounts: dict[str, Decimal] = defaultdict(Decimal)
    without_price: dict[str, int] = {}
    for country, parts in parts_by_country.items():
        price = prices.get(country)
        if price is not None:
            amounts[price.currency] += parts * price.amount
        elif parts:
            without_price[country] = parts
    largest_first = sorted(amounts.items(), key=lambda it: (-it[1], it[0]))
    return CostEstimate(dict(largest_first), without_price)


class TextCost(NamedTuple):
    """What one text costs in a country."""

    country: str
    parts: int
    amount: Decimal
    currency: str


def cost_by_country(words: str, texting: Texting) -> list[TextCost]:
    """The cost in each country that has a price; its notice counts, so parts differ between countries."""
    costs = []
    for country, price in sorted(texting.settings.prices.items()):
        parts = compose(words, brand=texting.brand, notice=texting.notice_of(country)).measured.parts
        costs.append(TextCost(country, parts, parts * price.amount, price.currency))
    return costs
