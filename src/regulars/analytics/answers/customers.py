"""Answers the question about customers: new and returning, how many bought again, and the time between purchases."""

from datetime import datetime
from typing import Final

import numpy as np

from regulars.analytics.answers.purchases import all_purchases, first_days, purchases_of
from regulars.analytics.answers.tickets import (
    Buckets,
    Tickets,
    Window,
    buckets_of,
    date_of,
    money_of,
    whole_bucket,
    window_of,
)
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.numbers import Summands, sum_groups
from regulars.columns.engine.purchase_days import PurchaseDays, begins_of
from regulars.columns.engine.sales_runs import SalesSelection
from regulars.columns.engine.threads import map_in_threads
from regulars.columns.model import IDENTIFIED_SALES, NO_CUSTOMER
from regulars.columns.questions import CustomerFigures, CustomersAnswer, CustomersQuestion, IntervalCount, Intervals

# The first day of each range of the time between purchases.
INTERVAL_DAYS: Final = (1, 8, 15, 31, 61, 91, 181, 366)
_NEXT_DAYS: Final = (*INTERVAL_DAYS[1:], None)
# The customer of a sale bought before the period, first bought in another day, week or month (bucket) of the period, or
# first bought in the bucket of the sale.
_RETURNING, _NEW_IN_PERIOD, _NEW_IN_BUCKET = range(3)


def answer_customers(tickets: Tickets, question: CustomersQuestion, as_of: datetime) -> CustomersAnswer:
    sales_window = tickets.first_and_last_day()
    firsts = first_days(tickets)
    buckets = buckets_of(question.period, question.by, sales_window)
    bought = purchases_of(tickets, buckets.window)
    nets = _nets(tickets, buckets, firsts)
    compared = None
    if question.comparison is not None:
        compared_bucket = whole_bucket(question.comparison, sales_window)
        compared_nets = _nets(tickets, compared_bucket, firsts)
        compared = _total(
            tickets, compared_bucket, purchases_of(tickets, compared_bucket.window), firsts, compared_nets
        )
    count, identified = _count_tickets(tickets, window_of(question.period))
    return CustomersAnswer(
        as_of=as_of,
        buckets=tuple(_figures(tickets, buckets, bought, firsts, _split_nets(nets))),
        whole=_total(tickets, whole_bucket(question.period, sales_window), bought, firsts, nets),
        compared=compared,
        intervals=_count_intervals(tickets, window_of(question.period), bought),
        tickets=count,
        identified=identified,
    )


def _figures(
    tickets: Tickets, buckets: Buckets, bought: PurchaseDays, firsts: Array, nets: tuple[Array, Array]
) -> list[CustomerFigures]:
    """Count the customers of each bucket. `nets` has the net of new and of returning customers, by bucket and
    currency."""
    if len(buckets) == 1:
        starts = bought.starts
        bucket_of_start = np.zeros(starts.size, np.int32)
    else:
        bucket = buckets.index(bought.day)
        # The days of a customer in one bucket are adjacent, since buckets ascend with the days.
        starts = np.flatnonzero(begins_of(bought.customer, bucket))
        bucket_of_start = bucket[starts]
    is_new = firsts[bought.customer[starts]] >= buckets.first.astype(np.int32)[bucket_of_start]
    # True if the next day in the array still belongs to the same customer and bucket.
    has_second_day = np.diff(starts, append=bought.day.size) > 1
    size = len(buckets)
    # Four counts per bucket: the index is twice `is_new`, plus 1 for a second day.
    kinds = bucket_of_start * np.int32(4) + (is_new.view(np.int8) * np.int8(2) + has_second_day.view(np.int8))
    # For each bucket: of returning and of new customers, those with one purchase day and those with several.
    counts = np.bincount(kinds, minlength=4 * size).reshape(size, 2, 2)
    all_customers, new, repeated = counts.sum(axis=(1, 2)), counts[:, 1].sum(axis=1), counts[:, :, 1].sum(axis=1)
    currencies = tickets.currencies
    return [
        CustomerFigures(
            first=date_of(buckets.first[index]),
            last=date_of(buckets.last[index]),
            new=int(new[index]),
            returning=int(all_customers[index] - new[index]),
            repeated=int(repeated[index]),
            new_net_cents=money_of(currencies, nets[0][index]),
            returning_net_cents=money_of(currencies, nets[1][index]),
        )
        for index in range(size)
    ]


def _total(tickets: Tickets, bucket: Buckets, bought: PurchaseDays, firsts: Array, nets: Array) -> CustomerFigures:
    totals = nets.sum(axis=0, keepdims=True)
    new_nets = totals[:, _NEW_IN_PERIOD] + totals[:, _NEW_IN_BUCKET]
    return _figures(tickets, bucket, bought, firsts, (new_nets, totals[:, _RETURNING]))[0]


def _split_nets(nets: Array) -> tuple[Array, Array]:
    """For each bucket the net of its new customers, and the net of all other customers."""
    return nets[:, _NEW_IN_BUCKET], nets[:, _RETURNING] + nets[:, _NEW_IN_PERIOD]


def _nets(tickets: Tickets, buckets: Buckets, firsts: Array) -> Array:
    """The net by bucket, by newness of the customer (returning, new in another bucket, new in this bucket) and by
    currency."""
    shape = len(buckets), 3, len(tickets.currencies)
    window = buckets.window
    is_new = (firsts >= window[0]) & (firsts <= window[1])
    # Narrow numbers are looked up, compared and added in half of the time.
    narrow_dtype = np.dtype(np.int8 if shape[0] <= np.iinfo(np.int8).max else np.int16)
    size = shape[0] * shape[1] * shape[2]
    # Constants in the type of the indexes, so that numpy does not convert the arrays.
    three, currencies = np.array([3, shape[2]], np.int16 if size <= np.iinfo(np.int16).max else np.int32)
    first_bucket = np.full(tickets.customer_count, -1, narrow_dtype)
    first_bucket[is_new] = buckets.index(firsts[is_new])

    def nets_of_run(selection: SalesSelection) -> Summands:
        bucket = buckets.index_of(selection, tickets.zone).astype(narrow_dtype, copy=False)
        of_first: Array = first_bucket.take(selection.of("customer"))
        newness = (of_first >= 0).view(np.int8) + (of_first == bucket).view(np.int8)
        indexes: Array = bucket * three + newness
        if currencies > 1:
            # `kind >> 1` is the currency.
            indexes = indexes * currencies + (selection.of("kind") >> 1)
        return Summands(indexes, selection.of("amount"))

    return sum_groups(map_in_threads(nets_of_run, tickets.select(window, of_customers=True)), size).reshape(shape)


def _count_tickets(tickets: Tickets, window: Window) -> tuple[int, int]:
    """Count all tickets, and the tickets with a customer, even if the customer was erased."""
    count = identified = 0
    for selection in tickets.select(window):
        size = selection.last - selection.first if selection.row_filter is None else selection.row_filter.size
        count += size
        is_identified = selection.run.meta.kind == IDENTIFIED_SALES
        identified += size if is_identified else int(np.count_nonzero(selection.of("customer") != NO_CUSTOMER))
    return count, identified


def _count_intervals(tickets: Tickets, window: Window, bought: PurchaseDays) -> Intervals:
    history = all_purchases(tickets)
    is_later = history.within(window)
    is_later[history.starts] = False
    later = np.flatnonzero(is_later)
    members = tickets.members_of(history.customer[later])
    if members is not None:
        later = later[members]
    if tickets.stores is not None:
        later = later[history.where(later).are_among(bought)]
    counts_by_days = np.bincount(history.day[later] - history.day[later - 1])
    counts = [int(counts_by_days[first:after].sum()) for first, after in zip(INTERVAL_DAYS, _NEXT_DAYS, strict=True)]
    ends = (None if after is None else after - 1 for after in _NEXT_DAYS)
    return Intervals(counts=tuple(map(IntervalCount, INTERVAL_DAYS, ends, counts)), median_days=_median(counts_by_days))


def _median(counts: Array) -> float | None:
    """The median of the indexes, where index `i` occurs `counts[i]` times."""
    ends = counts.cumsum()
    total = int(ends[-1]) if ends.size else 0
    middle = np.searchsorted(ends, [(total - 1) // 2, total // 2], "right")
    return float(middle.mean()) if total else None
