"""New and returning customers, how many bought again, and the time between purchases."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import numpy as np

from regulars.segments.analysis.engine.answers.purchases import all_purchases, first_days, purchases_of
from regulars.segments.analysis.engine.answers.tickets import (
    Buckets,
    Tickets,
    Window,
    buckets_of,
    date_of,
    money_of,
    whole_bucket,
    window_of,
)
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import sum_groups
from regulars.segments.analysis.engine.purchase_days import PurchaseDays, begins_of
from regulars.segments.analysis.questions import (
    CustomerFigures,
    CustomersAnswer,
    CustomersQuestion,
    IntervalCount,
    Intervals,
)
from regulars.segments.columns.model import NO_CUSTOMER

# The first day of each range of the time between purchases.
INTERVAL_DAYS: Final = (1, 8, 15, 31, 61, 91, 181, 366)


def answer_customers(tickets: Tickets, question: CustomersQuestion, as_of: datetime) -> CustomersAnswer:
    between = tickets.first_and_last_day()
    history = all_purchases(tickets)
    firsts = first_days(history, tickets.size)
    buckets = buckets_of(question.period, question.by, between)
    whole = whole_bucket(question.period, between)
    compared = None if question.comparison is None else whole_bucket(question.comparison, between)
    count, identified = _count_tickets(tickets, window_of(question.period))
    return CustomersAnswer(
        as_of=as_of,
        buckets=tuple(_figures(tickets, buckets, firsts)),
        whole=_figures(tickets, whole, firsts)[0],
        compared=None if compared is None else _figures(tickets, compared, firsts)[0],
        intervals=_intervals(tickets, history, window_of(question.period)),
        tickets=count,
        identified=identified,
    )


def _figures(tickets: Tickets, buckets: Buckets, firsts: Array) -> list[CustomerFigures]:
    bought = purchases_of(tickets, buckets.window)
    bucket = buckets.index(bought.day)
    # A customer's days in a bucket stand together, since buckets ascend with the days.
    begins = begins_of(bought.customer, bucket)
    place, size = bucket[begins], len(buckets)
    is_new = firsts[bought.customer[begins]] >= buckets.first[place]
    has_second_day = np.append(~begins[1:], False)[: begins.size][begins]
    new, returning, repeated = (
        np.bincount(place[some], minlength=size).tolist() for some in (is_new, ~is_new, has_second_day)
    )
    nets = _nets(tickets, buckets, firsts)
    currencies = tickets.currencies
    return [
        CustomerFigures(
            first=date_of(buckets.first[at]),
            last=date_of(buckets.last[at]),
            new=new[at],
            returning=returning[at],
            repeated=repeated[at],
            new_net_cents=money_of(currencies, nets[at, 1]),
            returning_net_cents=money_of(currencies, nets[at, 0]),
        )
        for at in range(size)
    ]


def _nets(tickets: Tickets, buckets: Buckets, firsts: Array) -> Array:
    """The net of each bucket, of other and of new customers, in each currency."""
    shape = len(buckets), 2, len(tickets.currencies)
    values = []
    for selection in tickets.select(buckets.window, of_customers=True):
        bucket = buckets.index(selection.days(tickets.zone))
        is_new = firsts[selection.of("customer")] >= buckets.first[bucket]
        # NEVER, the first day of customers who only returned, is no day of a bucket.
        is_new &= firsts[selection.of("customer")] <= buckets.last[bucket]
        places = (2 * bucket + is_new) * shape[2] + (selection.of("kind") >> 1)
        values.append((places, selection.of("amount")))
    return sum_groups(values, shape[0] * shape[1] * shape[2]).reshape(shape)


def _count_tickets(tickets: Tickets, window: Window) -> tuple[int, int]:
    """All tickets, and those with a customer, also one who was erased."""
    count = identified = 0
    for selection in tickets.select(window):
        customer = selection.of("customer")
        count += customer.size
        identified += int(np.count_nonzero(customer != NO_CUSTOMER))
    return count, identified


def _intervals(tickets: Tickets, history: PurchaseDays, window: Window) -> Intervals:
    counted = history.within(window) & tickets.members[history.customer]
    if tickets.stores is not None:
        counted &= history.are_among(purchases_of(tickets, window))
    later = np.flatnonzero(counted & ~history.begins)
    days = history.day[later] - history.day[later - 1]
    places = np.searchsorted(np.array(INTERVAL_DAYS), days, "right") - 1
    counts: Sequence[int] = np.bincount(places, minlength=len(INTERVAL_DAYS)).tolist()
    ends = (*(first - 1 for first in INTERVAL_DAYS[1:]), None)
    return Intervals(
        counts=tuple(map(IntervalCount, INTERVAL_DAYS, ends, counts)),
        median_days=float(np.median(days)) if days.size else None,
    )
