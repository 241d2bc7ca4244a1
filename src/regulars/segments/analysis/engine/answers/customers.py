"""New and returning customers, how many bought again, and the time between purchases."""

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
from regulars.segments.analysis.engine.numbers import Summands, sum_groups
from regulars.segments.analysis.engine.purchase_days import PurchaseDays, begins_of
from regulars.segments.analysis.questions import (
    CustomerFigures,
    CustomersAnswer,
    CustomersQuestion,
    IntervalCount,
    Intervals,
)
from regulars.segments.columns.model import NO_CUSTOMER, OF_CUSTOMERS

# The first day of each range of the time between purchases.
INTERVAL_DAYS: Final = (1, 8, 15, 31, 61, 91, 181, 366)
_NEXT_DAYS: Final = (*INTERVAL_DAYS[1:], None)
# Whether a customer is new, at a sale in a bucket.
_RETURNING, _NEW_IN_PERIOD, _NEW_IN_BUCKET = range(3)


def answer_customers(tickets: Tickets, question: CustomersQuestion, as_of: datetime) -> CustomersAnswer:
    between = tickets.first_and_last_day()
    firsts = first_days(tickets)
    buckets = buckets_of(question.period, question.by, between)
    bought = purchases_of(tickets, buckets.window)
    nets = _nets(tickets, buckets, firsts)
    compared = None
    if question.comparison is not None:
        other = whole_bucket(question.comparison, between)
        other_nets = _nets(tickets, other, firsts)
        compared = _whole(tickets, other, purchases_of(tickets, other.window), firsts, other_nets)
    count, identified = _count_tickets(tickets, window_of(question.period))
    return CustomersAnswer(
        as_of=as_of,
        buckets=tuple(_figures(tickets, buckets, bought, firsts, _split(nets))),
        whole=_whole(tickets, whole_bucket(question.period, between), bought, firsts, nets),
        compared=compared,
        intervals=_intervals(tickets, window_of(question.period), bought),
        tickets=count,
        identified=identified,
    )


def _figures(
    tickets: Tickets, buckets: Buckets, bought: PurchaseDays, firsts: Array, nets: tuple[Array, Array]
) -> list[CustomerFigures]:
    """`nets` are those of new and of returning customers, for each bucket and currency."""
    if len(buckets) == 1:
        starts = np.flatnonzero(bought.begins)
        place = np.zeros(starts.size, np.int32)
    else:
        bucket = buckets.index(bought.day)
        # A customer's days in a bucket stand together, since buckets ascend with the days.
        starts = np.flatnonzero(begins_of(bought.customer, bucket))
        place = bucket[starts]
    is_new = firsts[bought.customer[starts]] >= buckets.first[place]
    # The next customer or bucket begins after the next day.
    has_second_day = np.diff(starts, append=bought.day.size) > 1
    size = len(buckets)
    everyone, new, repeated = (
        np.bincount(places, minlength=size) for places in (place, place[is_new], place[has_second_day])
    )
    currencies = tickets.currencies
    return [
        CustomerFigures(
            first=date_of(buckets.first[at]),
            last=date_of(buckets.last[at]),
            new=int(new[at]),
            returning=int(everyone[at] - new[at]),
            repeated=int(repeated[at]),
            new_net_cents=money_of(currencies, nets[0][at]),
            returning_net_cents=money_of(currencies, nets[1][at]),
        )
        for at in range(size)
    ]


def _whole(tickets: Tickets, whole: Buckets, bought: PurchaseDays, firsts: Array, nets: Array) -> CustomerFigures:
    together = nets.sum(axis=0, keepdims=True)
    of_new = together[:, _NEW_IN_PERIOD] + together[:, _NEW_IN_BUCKET]
    return _figures(tickets, whole, bought, firsts, (of_new, together[:, _RETURNING]))[0]


def _split(nets: Array) -> tuple[Array, Array]:
    return nets[:, _NEW_IN_BUCKET], nets[:, _RETURNING] + nets[:, _NEW_IN_PERIOD]


def _nets(tickets: Tickets, buckets: Buckets, firsts: Array) -> Array:
    """The net of each bucket, for returning customers, for those who are new in another bucket and those who are new in
    this one, in each currency."""
    shape = len(buckets), 3, len(tickets.currencies)
    window = buckets.window
    is_new = (firsts >= window[0]) & (firsts <= window[1])
    first_bucket = np.full(tickets.size, -1, np.int16)
    first_bucket[is_new] = buckets.index(firsts[is_new])
    values = []
    for selection in tickets.select(window, of_customers=True):
        bucket = buckets.index_of(selection, tickets.zone)
        of_first = first_bucket.take(selection.of("customer"))
        newness = (of_first >= 0).view(np.int8) + (of_first == bucket).view(np.int8)
        places = (bucket * np.int32(3) + newness) * np.int32(shape[2]) + (selection.of("kind") >> 1)
        values.append(Summands(places, selection.of("amount")))
    return sum_groups(values, shape[0] * shape[1] * shape[2]).reshape(shape)


def _count_tickets(tickets: Tickets, window: Window) -> tuple[int, int]:
    """All tickets, and those with a customer, also one who was erased."""
    count = identified = 0
    for selection in tickets.select(window):
        size = selection.last - selection.first if selection.some is None else selection.some.size
        count += size
        is_of_customers = selection.run.run.kind == OF_CUSTOMERS
        identified += size if is_of_customers else int(np.count_nonzero(selection.of("customer") != NO_CUSTOMER))
    return count, identified


def _intervals(tickets: Tickets, window: Window, bought: PurchaseDays) -> Intervals:
    history = all_purchases(tickets)
    later = np.flatnonzero(history.within(window) & ~history.begins)
    members = tickets.members_of(history.customer[later])
    if members is not None:
        later = later[members]
    if tickets.stores is not None:
        later = later[history.where(later).are_among(bought)]
    of_days = np.bincount(history.day[later] - history.day[later - 1])
    counts = [int(of_days[first:after].sum()) for first, after in zip(INTERVAL_DAYS, _NEXT_DAYS, strict=True)]
    ends = (None if after is None else after - 1 for after in _NEXT_DAYS)
    return Intervals(counts=tuple(map(IntervalCount, INTERVAL_DAYS, ends, counts)), median_days=_median(of_days))


def _median(counts: Array) -> float | None:
    """Of numbers that occur so many times each."""
    ends = counts.cumsum()
    total = int(ends[-1]) if ends.size else 0
    middle = np.searchsorted(ends, [(total - 1) // 2, total // 2], "right")
    return float(middle.mean()) if total else None
