"""The tickets of two years, day by day in the order of time, as the sales that the use case takes."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import accumulate

from regulars.demo.assortment import DISCOUNTS_PERCENT, PROPERTY_KEYS, Line, lines_of
from regulars.demo.chain import COUNTRIES, SHOPS, Shop
from regulars.demo.people import Customer
from regulars.demo.season import OPENING_MINUTES, OPENING_WEIGHTS, days_until, is_on_sale, tickets_per_day
from regulars.kit.ids import ByExternalId
from regulars.sales.model import Sale, SaleType

ANONYMOUS_SHARE = 0.3
RETURN_SHARE = 0.05
RETURN_WITHIN_DAYS = 28
# How many lines tickets have: one to four.
LINE_COUNTS = (1, 2, 3, 4)
LINE_COUNT_WEIGHTS = (45, 80, 95, 100)
# Outside the months of sales hardly anything is reduced; inside, most things are.
USUAL_DISCOUNT_WEIGHTS = (92, 98, 100, 100)
SALE_DISCOUNT_WEIGHTS = (30, 60, 85, 100)
SOURCE = "demo tills"
CARD, CASH = b"card", b"cash"
CARD_SHARE = 0.8
SUNDAY = 6


class Till:
    """One shop's till: its regulars, its lines of each discount, and the number of its next ticket."""

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
def _lines(country: str) -> list[list[Line]]:
    """One list of lines for each discount, shared by the shops of a country."""
    return [lines_of(COUNTRIES[country], discount) for discount in DISCOUNTS_PERCENT]


def make_tickets(seed: int, customers: Sequence[Customer], *, count: int, last_day: date) -> Iterator[Sale]:
    """So many tickets, returns included; those of the last day end at midnight before it, so none is in the future."""
    source = random.Random(f"{seed}/tickets")  # noqa: S311  # a story, not a secret
    regulars: dict[str, list[ByExternalId]] = defaultdict(list)
    for customer in customers:
        regulars[customer.shop.external_id].append(ByExternalId(customer.external_id))
    tills = [Till(shop, regulars[shop.external_id]) for shop in SHOPS]
    days = days_until(last_day - timedelta(days=1))
    returns: dict[date, list[tuple[Till, ByExternalId, Line]]] = defaultdict(list)
    for day, planned in zip(days, tickets_per_day(days, count), strict=True):
        due = returns.pop(day, [])[:planned]
        yield from _day(source, tills, day, purchases=planned - len(due), due=due, returns=returns)


def _day(
    source: random.Random,
    tills: Sequence[Till],
    day: date,
    *,
    purchases: int,
    due: list[tuple[Till, ByExternalId, Line]],
    returns: dict[date, list[tuple[Till, ByExternalId, Line]]],
) -> Iterator[Sale]:
    """Everything that is drawn for each ticket is drawn for the whole day at once, which is several times faster."""
    opened = [till for till in tills if day.weekday() != SUNDAY or COUNTRIES[till.shop.country].opens_on_sunday]
    total = purchases + len(due)
    at = source.choices
    minutes = sorted(at(OPENING_MINUTES, cum_weights=OPENING_WEIGHTS, k=total))
    chosen = at(opened, cum_weights=list(accumulate(till.shop.weight for till in opened)), k=purchases)
    counts = at(LINE_COUNTS, cum_weights=LINE_COUNT_WEIGHTS, k=purchases)
    weights = SALE_DISCOUNT_WEIGHTS if is_on_sale(day) else USUAL_DISCOUNT_WEIGHTS
    discounts = at(range(len(DISCOUNTS_PERCENT)), cum_weights=weights, k=purchases)
    tickets = list(zip(chosen, counts, discounts, strict=True))
    # Returns happen all day long, so they take the places of evenly spaced tickets.
    places = {position * total // len(due): item for position, item in enumerate(due)} if due else {}
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    uniform = source.random
    for position, minute in enumerate(minutes):
        occurred_at = midnight + timedelta(minutes=minute, milliseconds=int(uniform() * 60_000))
        returned = places.get(position)
        if returned is not None:
            till, customer, line = returned
            yield _sale(till, "RETURN", occurred_at=occurred_at, customer=customer, lines=[line], paid_by=CARD)
            continue
        till, lines_count, discount = tickets.pop()
        buyer = None
        if uniform() > ANONYMOUS_SHARE and till.customers:
            # The square makes a few customers come often and many come rarely.
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
    lines: Sequence[Line],
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
