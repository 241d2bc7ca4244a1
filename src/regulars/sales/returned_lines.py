"""Match each returned line to a purchase of the same customer by a rule, because a return does not name its purchase.

Sales are processed in the order of (`at`, `external_id`), so of two at the same time the one with the lower id is the
earlier. The amount of each line is subtracted from the latest earlier purchase within 30 days that has the product in
the same currency and is not fully returned yet; an amount that one purchase cannot cover is subtracted from the
purchase before it. So the amount returned of a purchase depends only
on later sales: for the purchases since a given time, the sales since that time give the same result as all sales.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final, Generic, NamedTuple, TypeVar

RETURN_WITHIN: Final = timedelta(days=30)
RETURN_WITHIN_US: Final = RETURN_WITHIN // timedelta(microseconds=1)

Key = TypeVar("Key")


class CustomerSale(NamedTuple, Generic[Key]):
    """A ticket of one customer; `key` identifies it in the result. Each line is a product code and a total in cents,
    which is positive for returns too."""

    key: Key
    # The time of the sale, in microseconds since a fixed time that is the same for all sales.
    at: int
    external_id: str
    is_return: bool
    currency: str
    total_cents: int
    lines: Sequence[tuple[str | None, int]]


class MatchedReturns(NamedTuple, Generic[Key]):
    """The amount returned of each purchase, and the amount of each return that no purchase covers; zeros are
    omitted."""

    returned_cents: dict[Key, int]
    unmatched_cents: dict[Key, int]


class _Unreturned(Generic[Key]):
    """The amount of one product on one purchase that is not returned yet."""

    __slots__ = ("at", "cents", "key")

    def __init__(self, key: Key, at: int, cents: int) -> None:
        self.key, self.at, self.cents = key, at, cents


def match_returns(sales: Iterable[CustomerSale[Key]]) -> MatchedReturns[Key]:
    """Match all returns of one customer, in time proportional to the lines; the sales may be in any order."""
    # By currency and product: the purchases that are not fully returned, the latest at the end.
    unreturned: dict[tuple[str, str], list[_Unreturned[Key]]] = defaultdict(list)
    returned: dict[Key, int] = defaultdict(int)
    unmatched: dict[Key, int] = {}
    for sale in sorted(sales, key=lambda sale: (sale.at, sale.external_id)):
        if not sale.is_return:
            for product, cents in _sum_by_product(sale.lines).items():
                if cents > 0:
                    unreturned[sale.currency, product].append(_Unreturned(sale.key, sale.at, cents))
            continue
        matched = 0
        for product, amount in _sum_by_product(sale.lines).items():
            stack = unreturned.get((sale.currency, product), [])
            missing = amount
            while missing > 0 and stack and sale.at - stack[-1].at <= RETURN_WITHIN_US:
                purchase = stack[-1]
                taken = min(missing, purchase.cents)
                returned[purchase.key] += taken
                matched += taken
                missing -= taken
                purchase.cents -= taken
                if purchase.cents == 0:
                    stack.pop()
        if sale.total_cents > matched:
            unmatched[sale.key] = sale.total_cents - matched
    return MatchedReturns(dict(returned), unmatched)


def net_cents(total_cents: int, returned_cents: int) -> int:
    """Return the total less the returned amount, but at least 0: with a discount on the whole ticket, its lines may add
    up to more than its total."""
    return max(0, total_cents - returned_cents)


def returned_totals(totals: Sequence[int]) -> list[int]:
    """Return the totals of a return's lines as positive amounts: some cash registers write them with a minus sign."""
    return list(totals) if sum(totals) >= 0 else [-cents for cents in totals]


def _sum_by_product(lines: Iterable[tuple[str | None, int]]) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for product, cents in lines:
        if product is not None:
            sums[product] += cents
    return sums
