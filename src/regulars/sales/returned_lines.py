"""Which purchase of a customer a returned line belongs to. A return does not name its purchase, so a rule decides.

Returns are taken in the order of (`at`, `external_id`). Each line takes from the latest earlier purchase within 30
days that has the product in the same currency and something left of it; what one purchase cannot cover is taken from
the one before it. So the amount returned of a purchase depends on sales after it only: the sales from a moment on
give the same result for their purchases as all sales do.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final, Generic, NamedTuple, TypeVar

RETURN_WITHIN: Final = timedelta(days=30)
RETURN_WITHIN_US: Final = RETURN_WITHIN // timedelta(microseconds=1)

Key = TypeVar("Key")


class CustomerSale(NamedTuple, Generic[Key]):
    """A ticket of one customer. Its lines are product codes with their totals; those of a return are above 0."""

    key: Key
    # Microseconds since any epoch.
    at: int
    external_id: str
    is_return: bool
    currency: str
    total_cents: int
    lines: Sequence[tuple[str | None, int]]


class MatchedReturns(NamedTuple, Generic[Key]):
    """What was returned of each purchase, and what is left of each return that no purchase covers; no zeros."""

    returned_cents: dict[Key, int]
    unmatched_cents: dict[Key, int]


class _Rest(Generic[Key]):
    """What is left of one product on one purchase."""

    __slots__ = ("at", "cents", "key")

    def __init__(self, key: Key, at: int, cents: int) -> None:
        self.key, self.at, self.cents = key, at, cents


def match_returns(sales: Iterable[CustomerSale[Key]]) -> MatchedReturns[Key]:
    """Match all returns of one customer, in any order given. It takes time in proportion to the lines."""
    # By currency and product: the purchases with something left, the latest at the end.
    rests: dict[tuple[str, str], list[_Rest[Key]]] = defaultdict(list)
    returned: dict[Key, int] = defaultdict(int)
    unmatched: dict[Key, int] = {}
    # A purchase of the same moment is not earlier, so returns come first.
    for sale in sorted(sales, key=lambda sale: (sale.at, not sale.is_return, sale.external_id)):
        if not sale.is_return:
            for product, cents in _sum_by_product(sale.lines).items():
                if cents > 0:
                    rests[sale.currency, product].append(_Rest(sale.key, sale.at, cents))
            continue
        matched = 0
        for product, wanted in _sum_by_product(sale.lines).items():
            stack = rests.get((sale.currency, product), [])
            missing = wanted
            while missing > 0 and stack and sale.at - stack[-1].at <= RETURN_WITHIN_US:
                rest = stack[-1]
                taken = min(missing, rest.cents)
                returned[rest.key] += taken
                matched += taken
                missing -= taken
                rest.cents -= taken
                if rest.cents == 0:
                    stack.pop()
        if sale.total_cents > matched:
            unmatched[sale.key] = sale.total_cents - matched
    return MatchedReturns(dict(returned), unmatched)


def net_cents(total_cents: int, returned_cents: int) -> int:
    """The lines of a ticket may cost more than the whole, which has a discount."""
    return max(0, total_cents - returned_cents)


def returned_totals(totals: Sequence[int]) -> list[int]:
    """The totals of a return's lines as amounts above 0: some tills write them with a minus sign."""
    return list(totals) if sum(totals) >= 0 else [-cents for cents in totals]


def _sum_by_product(lines: Iterable[tuple[str | None, int]]) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for product, cents in lines:
        if product is not None:
            sums[product] += cents
    return sums
