"""What sales come to, purchases less returns. Quantities are whole millionths, so that sums of them are exact."""

from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from regulars.conditions.customers import Line, Sale

MILLION: Final = 1_000_000

# Whether a line is of the products asked for; None where any sale will do.
Passes = Callable[[Line], bool] | None


def millionths(quantity: float) -> int:
    """A quantity in millionths, half to even."""
    return int((Decimal(repr(quantity)) * MILLION).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def is_among(sale: Sale, passes: Passes) -> bool:
    return passes is None or any(passes(line) for line in sale.lines)


def spend_of(sales: Iterable[Sale], currency: str, passes: Passes) -> int:
    """In cents: what was paid less what was paid back; by product, the totals of its lines."""
    return sum(net_cents(sale, passes) for sale in sales if sale.currency == currency)


def net_cents(sale: Sale, passes: Passes) -> int:
    """The total of a return is written without a sign. Its lines may have one already: then they sum below 0."""
    is_return = sale.type == "RETURN"
    if passes is None:
        return -sale.amount_cents if is_return else sale.amount_cents
    cents = sum(line.cents for line in sale.lines if passes(line))
    is_unsigned = is_return and sum(line.cents for line in sale.lines) >= 0
    return -cents if is_unsigned else cents


def articles_of(sales: Iterable[Sale], passes: Passes) -> int:
    """In millionths of an article: bought less returned. Lines without a product are no articles."""
    return sum(_net_millionths(sale, passes) for sale in sales)


def _net_millionths(sale: Sale, passes: Passes) -> int:
    lines = [line for line in sale.lines if line.properties is not None]
    millionths = sum(line.millionths for line in lines if passes is None or passes(line))
    # A register that writes prices with a sign may write quantities without one, so they are judged by themselves.
    is_unsigned = sale.type == "RETURN" and sum(line.millionths for line in lines) >= 0
    return -millionths if is_unsigned else millionths
