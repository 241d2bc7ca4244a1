"""What texts cost: parts by country at the price of a part, never added across currencies. No I/O."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from regulars.messaging.settings.model import Price


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
