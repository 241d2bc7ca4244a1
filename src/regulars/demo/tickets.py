"""Invents the tickets of two years in the order of time, distributed over the year, the week and the day.

They give the pages under *Analyse* something to show: the chain grows and opens a shop, articles have seasons, new
customers come and some come back, and an article is recalled. Days are numbered from the first day of the demo.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from regulars.demo.assortment import (
    DISCOUNTS_PERCENT,
    PROPERTY_KEYS,
    RECALLED,
    ArticleLine,
    line_weights,
    lines_of,
)
from regulars.demo.chain import COUNTRIES, DAYS, SHOPS, Shop
from regulars.demo.people import DemoCustomer
from regulars.kit.ids import ByExternalId
from regulars.sales.model import MILLION, Sale, SaleType

# January and July have seasonal sales, December has Christmas, August is quiet.
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
    """Distribute the total over the days by their weights; the rounded numbers add up to the total."""
    weights = [day_weight(day, position / len(days)) for position, day in enumerate(days)]
    total_weight = sum(weights)
    ends = [round(total * weight / total_weight) for weight in accumulate(weights)]
    return [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def day_weight(day: date, elapsed_share: float) -> float:
    """How many tickets the day has, relative to other days; `elapsed_share` is the share of the two years before it."""
    return MONTH_WEIGHTS[day.month - 1] * WEEKDAY_WEIGHTS[day.weekday()] * (1 + GROWTH * elapsed_share)


ANONYMOUS_SHARE = 0.3
RETURN_SHARE = 0.05
RETURN_WITHIN_DAYS = 28
# The number of lines of a ticket: one to four. These weights and those below are cumulative.
LINE_COUNTS = (1, 2, 3, 4)
LINE_COUNT_WEIGHTS = (45, 80, 95, 100)
# Outside the sale months few articles are discounted; during them, most are.
USUAL_DISCOUNT_WEIGHTS = (92, 98, 100, 100)
SALE_DISCOUNT_WEIGHTS = (30, 60, 85, 100)
# The share of a shop's customers who are known on the first day; the others buy for the first time later.
FIRST_DAY_SHARE = 0.25
# The share of purchases that long-standing customers make; recent customers make the others.
LOYAL_SHARE = 0.55
# The recall: it happens this many days before the last day, and stops the sale of the article for `RECALL_DAYS`. Of the
# articles sold in the days before it, a share is returned within some days.
RECALLED_DAYS_AGO = 50
RECALL_DAYS = 25
RECALL_REACHES_BACK_DAYS = 60
RECALL_RETURN_SHARE = 0.6
RECALL_RETURN_WITHIN_DAYS = 14
SOURCE = "demo tills"
CARD, CASH = b"card", b"cash"
CARD_SHARE = 0.8
SUNDAY = 6


class ReturnedLine(NamedTuple):
    """A line of a purchase that the customer returns later, at the same till."""

    till: "Till"
    customer: ByExternalId
    line: ArticleLine


class Till:
    """The till of a shop: its customers, its articles at each discount, and the number of its next ticket."""

    def __init__(self, shop: Shop, customers: Sequence[ByExternalId]) -> None:
        self.shop = shop
        self.store = ByExternalId(shop.external_id)
        self.customers = customers
        country = COUNTRIES[shop.country]
        self.opens_on_sunday = country.opens_on_sunday
        self.currency = country.currency
        self.lines = _articles_of(shop.country)
        self.next_number = 1

    def next_external_id(self) -> str:
        """The id of the next ticket."""
        number = self.next_number
        self.next_number = number + 1
        return f"{self.shop.external_id}:{number:07d}"

    def is_open(self, day_number: int, day: date) -> bool:
        return day_number >= self.shop.opens_after_days and (self.opens_on_sunday or day.weekday() != SUNDAY)

    def choose_customer(self, day_number: int, rng: random.Random) -> ByExternalId | None:
        """A customer of those known by this day; their number grows with the days since the shop opened."""
        opening_day = self.shop.opens_after_days
        first_share = FIRST_DAY_SHARE if opening_day == 0 else 0.0
        share = first_share + (1 - first_share) * (day_number + 1 - opening_day) / (DAYS - opening_day)
        known_count = int(len(self.customers) * share)
        if known_count == 0:
            return None
        # A power of a random number favours one end of the list: few customers buy often, and many rarely.
        if rng.random() < LOYAL_SHARE:
            return self.customers[int(known_count * rng.random() ** 3)]
        return self.customers[known_count - 1 - int(known_count * rng.random() ** 4)]


@cache
def _articles_of(country: str) -> list[list[ArticleLine]]:
    """The articles of a country at each discount, shared by its shops."""
    return [lines_of(COUNTRIES[country], discount) for discount in DISCOUNTS_PERCENT]


def make_tickets(seed: int, customers: Sequence[DemoCustomer], *, count: int, last_day: date) -> Iterator[Sale]:
    """`count` tickets, including returns. They end at midnight before `last_day`, so that none is in the future."""
    rng = random.Random(f"{seed}/tickets")  # noqa: S311  # sample data, not a secret
    by_shop: dict[str, list[ByExternalId]] = defaultdict(list)
    for customer in customers:
        by_shop[customer.shop.external_id].append(ByExternalId(customer.external_id))
    tills = [Till(shop, by_shop[shop.external_id]) for shop in SHOPS]
    days = days_until(last_day - timedelta(days=1))
    later_returns: dict[int, list[ReturnedLine]] = defaultdict(list)
    for day_number, tickets in enumerate(tickets_per_day(days, count)):
        due_returns = later_returns.pop(day_number, [])[:tickets]
        yield from _make_day(
            rng, tills, days, day_number, tickets=tickets, due_returns=due_returns, later_returns=later_returns
        )


def _make_day(
    rng: random.Random,
    tills: Sequence[Till],
    days: Sequence[date],
    day_number: int,
    *,
    tickets: int,
    due_returns: list[ReturnedLine],
    later_returns: dict[int, list[ReturnedLine]],
) -> Iterator[Sale]:
    """The tickets of one day: purchases, and the returns that are due. New returns are added to `later_returns` under
    the number of their day. Random values are drawn for all tickets at once, which is several times faster."""
    day = days[day_number]
    open_tills = [till for till in tills if till.is_open(day_number, day)]
    purchases = tickets - len(due_returns)
    choose = rng.choices
    minutes = sorted(choose(OPENING_MINUTES, cum_weights=OPENING_WEIGHTS, k=tickets))
    tills_used = choose(open_tills, cum_weights=list(accumulate(till.shop.weight for till in open_tills)), k=purchases)
    counts = choose(LINE_COUNTS, cum_weights=LINE_COUNT_WEIGHTS, k=purchases)
    weights = SALE_DISCOUNT_WEIGHTS if is_on_sale(day) else USUAL_DISCOUNT_WEIGHTS
    discounts = choose(range(len(DISCOUNTS_PERCENT)), cum_weights=weights, k=purchases)
    planned_purchases = list(zip(tills_used, counts, discounts, strict=True))
    since_recall = day_number - (DAYS - RECALLED_DAYS_AGO)
    cumulative_weights = line_weights(day.month, is_recalled=0 <= since_recall < RECALL_DAYS)
    # Returns are spread evenly over the day.
    returns_by_position = {index * tickets // len(due_returns): line for index, line in enumerate(due_returns)}
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    uniform = rng.random
    for position, minute in enumerate(minutes):
        occurred_at = midnight + timedelta(minutes=minute, milliseconds=int(uniform() * 60_000))
        returned = returns_by_position.get(position)
        if returned is not None:
            till, customer, line = returned
            yield _make_sale(till, "RETURN", occurred_at=occurred_at, customer=customer, lines=[line], paid_by=CARD)
            continue
        till, lines_count, discount = planned_purchases.pop()
        buyer = till.choose_customer(day_number, rng) if uniform() > ANONYMOUS_SHARE else None
        lines = choose(till.lines[discount], cum_weights=cumulative_weights, k=lines_count)
        if buyer is not None and (return_ := _choose_return(rng, lines, since_recall)) is not None:
            line, days_later = return_
            return_day = _next_open_day(till, days, day_number + days_later)
            later_returns[return_day].append(ReturnedLine(till, buyer, line))
        paid_by = CARD if uniform() < CARD_SHARE else CASH
        yield _make_sale(till, "PURCHASE", occurred_at=occurred_at, customer=buyer, lines=lines, paid_by=paid_by)


def _choose_return(
    rng: random.Random, lines: Sequence[ArticleLine], since_recall: int
) -> tuple[ArticleLine, int] | None:
    """The line of the ticket that will be returned, if any, and after how many days. `since_recall` is the number of
    days since the recall, negative before it."""
    if -RECALL_REACHES_BACK_DAYS <= since_recall < 0 and rng.random() < RECALL_RETURN_SHARE:
        for line in lines:
            if line.name == RECALLED:
                return line, -since_recall + int(rng.random() * RECALL_RETURN_WITHIN_DAYS)
    if rng.random() < RETURN_SHARE:
        return lines[0], 1 + int(rng.random() * RETURN_WITHIN_DAYS)
    return None


def _next_open_day(till: Till, days: Sequence[date], day_number: int) -> int:
    return next((later for later in range(day_number, len(days)) if till.is_open(later, days[later])), len(days))


def _make_sale(
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
    for position, line in enumerate(lines):
        amount += line.price_cents
        discount += line.discount_cents
        tax += line.tax_cents
        encoded.append(line.encoded[position])
    return Sale(
        external_id=till.next_external_id(),
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
        # Every line has the quantity 1.
        unit_millionths=len(lines) * MILLION,
        line_count=len(lines),
    )
