"""The tickets of two years in the order of time, distributed over the year, the week and the day."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import accumulate

from regulars.demo.assortment import DISCOUNTS_PERCENT, PROPERTY_KEYS, ArticleLine, lines_of
from regulars.demo.chain import COUNTRIES, DAYS, SHOPS, Shop
from regulars.demo.people import Customer
from regulars.kit.ids import ByExternalId
from regulars.sales.model import Sale, SaleType

# January and July are the months of sales, December is Christmas, August is quiet.
MONTH_WEIGHTS = (1.15, 0.80, 0.90, 0.95, 1.00, 1.05, 1.10, 0.70, 1.00, 1.05, 1.20, 1.75)
# Monday to Sunday.
WEEKDAY_WEIGHTS = (0.75, 0.80, 0.95, 0.90, 1.20, 1.70, 0.70)
# The chain grows every day, by a fifth over the two years.
GROWTH = 0.2
SALE_MONTHS = frozenset({1, 7})
HOUR_WEIGHTS = {10: 5, 11: 8, 12: 12, 13: 11, 14: 8, 15: 9, 16: 11, 17: 14, 18: 14, 19: 8}
OPENING_MINUTES = tuple(minute for hour in HOUR_WEIGHTS for minute in range(hour * 60, hour * 60 + 60))
OPENING_WEIGHTS = tuple(accumulate(HOUR_WEIGHTS[minute // 60] for minute in OPENING_MINUTES))


def days_until(last: date) -> list[date]:
    """The days of the demo, including the last one."""
    return [last - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]


def is_on_sale(day: date) -> bool:
    return day.month in SALE_MONTHS


def tickets_per_day(days: Sequence[date], total: int) -> list[int]:
    """Distribute the total by the weight of each day, without losing any to rounding."""
    weights = [day_weight(day, position / len(days)) for position, day in enumerate(days)]
    whole = sum(weights)
    ends = [round(total * weight / whole) for weight in accumulate(weights)]
    return [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def day_weight(day: date, progress: float) -> float:
    return MONTH_WEIGHTS[day.month - 1] * WEEKDAY_WEIGHTS[day.weekday()] * (1 + GROWTH * progress)


ANONYMOUS_SHARE = 0.3
RETURN_SHARE = 0.05
RETURN_WITHIN_DAYS = 28
# The number of lines of a ticket: one to four.
LINE_COUNTS = (1, 2, 3, 4)
LINE_COUNT_WEIGHTS = (45, 80, 95, 100)
# Outside the sale months few articles are discounted; during them, most are.
USUAL_DISCOUNT_WEIGHTS = (92, 98, 100, 100)
SALE_DISCOUNT_WEIGHTS = (30, 60, 85, 100)
SOURCE = "demo tills"
CARD, CASH = b"card", b"cash"
CARD_SHARE = 0.8
SUNDAY = 6


class Till:
    """The till of a shop: its customers, its lines for each discount, and the number of its next ticket."""

    def __init__(self, shop: Shop, customers: Sequence[ByExternalId]) -> None:
        self.shop = shop
        self.store = ByExternalId(shop.external_id)
        self.customers = customers
        self.currency = COUNTRIES[shop.country].currency
        self.lines = _lines(shop.country)
        self.next_number = 1

    def external_id(self) -> str:
        number = self.next_number
        self.next_number = number + 1
        return f"{self.shop.external_id}:{number:07d}"


@cache
def _lines(country: str) -> list[list[ArticleLine]]:
    """One list of lines for each discount, shared by the shops of a country."""
    return [lines_of(COUNTRIES[country], discount) for discount in DISCOUNTS_PERCENT]


def make_tickets(seed: int, customers: Sequence[Customer], *, count: int, last_day: date) -> Iterator[Sale]:
    """`count` tickets, including returns. They end at midnight before the last day, so that none is in the future."""
    source = random.Random(f"{seed}/tickets")  # noqa: S311  # sample data, not a secret
    regulars: dict[str, list[ByExternalId]] = defaultdict(list)
    for customer in customers:
        regulars[customer.shop.external_id].append(ByExternalId(customer.external_id))
    tills = [Till(shop, regulars[shop.external_id]) for shop in SHOPS]
    days = days_until(last_day - timedelta(days=1))
    returns: dict[date, list[tuple[Till, ByExternalId, ArticleLine]]] = defaultdict(list)
    for day, planned in zip(days, tickets_per_day(days, count), strict=True):
        due = returns.pop(day, [])[:planned]
        yield from _day(source, tills, day, purchases=planned - len(due), due=due, returns=returns)


def _day(
    source: random.Random,
    tills: Sequence[Till],
    day: date,
    *,
    purchases: int,
    due: list[tuple[Till, ByExternalId, ArticleLine]],
    returns: dict[date, list[tuple[Till, ByExternalId, ArticleLine]]],
) -> Iterator[Sale]:
    """Random values are drawn for all tickets of the day at once, which is several times faster than one by one."""
    opened = [till for till in tills if day.weekday() != SUNDAY or COUNTRIES[till.shop.country].opens_on_sunday]
    total = purchases + len(due)
    at = source.choices
    minutes = sorted(at(OPENING_MINUTES, cum_weights=OPENING_WEIGHTS, k=total))
    chosen = at(opened, cum_weights=list(accumulate(till.shop.weight for till in opened)), k=purchases)
    counts = at(LINE_COUNTS, cum_weights=LINE_COUNT_WEIGHTS, k=purchases)
    weights = SALE_DISCOUNT_WEIGHTS if is_on_sale(day) else USUAL_DISCOUNT_WEIGHTS
    discounts = at(range(len(DISCOUNTS_PERCENT)), cum_weights=weights, k=purchases)
    tickets = list(zip(chosen, counts, discounts, strict=True))
    # Returns are spread evenly over the day.
    returned_at = {position * total // len(due): item for position, item in enumerate(due)} if due else {}
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    uniform = source.random
    for position, minute in enumerate(minutes):
        occurred_at = midnight + timedelta(minutes=minute, milliseconds=int(uniform() * 60_000))
        returned = returned_at.get(position)
        if returned is not None:
            till, customer, line = returned
            yield _sale(till, "RETURN", occurred_at=occurred_at, customer=customer, lines=[line], paid_by=CARD)
            continue
        till, lines_count, discount = tickets.pop()
        buyer = None
        if uniform() > ANONYMOUS_SHARE and till.customers:
            # The square makes a few customers come often and many rarely.
            buyer = till.customers[int(len(till.customers) * uniform() ** 2)]
        lines = at(till.lines[discount], k=lines_count)
        if buyer is not None and uniform() < RETURN_SHARE:
            returns[day + timedelta(days=1 + int(uniform() * RETURN_WITHIN_DAYS))].append((till, buyer, lines[0]))
        paid_by = CARD if uniform() < CARD_SHARE else CASH
        yield _sale(till, "PURCHASE", occurred_at=occurred_at, customer=buyer, lines=lines, paid_by=paid_by)


def _sale(
    till: Till,
    kind: SaleType,
    *,
    occurred_at: datetime,
    customer: ByExternalId | None,
    lines: Sequence[ArticleLine],
    paid_by: bytes,
) -> Sale:
    amount = discount = tax = 0
    encoded = []
    for place, line in enumerate(lines):
        amount += line.price_cents
        discount += line.discount_cents
        tax += line.tax_cents
        encoded.append(line.encoded[place])
    return Sale(
        external_id=till.external_id(),
        type=kind,
        occurred_at=occurred_at,
        store=till.store,
        profile=customer,
        currency=till.currency,
        total_amount_cents=amount,
        total_discount_cents=discount,
        total_tax_cents=tax,
        source=SOURCE,
        payments=b'[{"method":"%b","amount_cents":%d}]' % (paid_by, amount),
        loyalty=None,
        metadata=None,
        line_items=b"[" + b",".join(encoded) + b"]",
        property_keys=PROPERTY_KEYS,
    )
