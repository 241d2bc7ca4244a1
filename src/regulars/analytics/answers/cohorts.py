"""Answers the question about cohorts, which are customers by the month of their first purchase: how many bought again,
and what they spent."""

from datetime import datetime
from typing import NamedTuple

import numpy as np

from regulars.analytics.answers.purchases import first_days, purchases_of
from regulars.analytics.answers.tickets import (
    Buckets,
    Tickets,
    buckets_of,
    date_of,
    first_day_of,
    money_of,
    months_of,
    window_of,
)
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.numbers import Summands, sum_groups
from regulars.columns.engine.purchase_days import PurchaseDays, begins_of
from regulars.columns.questions import COHORTS_MAX, Cohort, CohortMonth, CohortsAnswer, CohortsQuestion, Period

_NO_COHORT = -1


class _Months(NamedTuple):
    """The months from the first cohort to the current month; the first `cohorts` of them have a cohort each."""

    first: int
    cohorts: int
    buckets: Buckets

    @property
    def total(self) -> int:
        return len(self.buckets)


def answer_cohorts(tickets: Tickets, question: CohortsQuestion, as_of: datetime) -> CohortsAnswer:
    months = _find_months(tickets, question)
    if months.cohorts <= 0:
        return CohortsAnswer(as_of=as_of, cohorts=())
    pairs = _customer_months(tickets, months)
    cohort = _find_cohorts(tickets, months, pairs)
    bought_in, again = _count(months, pairs, cohort)
    nets = _nets(tickets, months, cohort)
    again_so_far, nets_so_far = again.cumsum(axis=1), nets.cumsum(axis=1)
    return CohortsAnswer(
        as_of=as_of,
        cohorts=tuple(
            Cohort(
                first=date_of(first_day_of(months.first + index)),
                customers=int(bought_in[index, 0]),
                months=tuple(
                    CohortMonth(
                        month=after,
                        bought=int(bought_in[index, after]),
                        bought_so_far=int(again_so_far[index, after]),
                        net_cents=money_of(tickets.currencies, nets[index, after]),
                        net_so_far_cents=money_of(tickets.currencies, nets_so_far[index, after]),
                        is_over=index + after < months.total - 1,
                    )
                    for after in range(min(months.total - index, COHORTS_MAX + 1))
                ),
            )
            for index in range(months.cohorts)
        ),
    )


def _find_months(tickets: Tickets, question: CohortsQuestion) -> _Months:
    """The months of the period between the first sale and today, at most 60."""
    window = window_of(question.period)
    sales = tickets.first_and_last_day(of_customers=True)
    first, last = months_of(np.array([max(window[0], sales[0]), min(window[1], tickets.today)])).tolist()
    first = max(first, last - COHORTS_MAX + 1)
    current = int(months_of(np.array(tickets.today)))
    start, end = first_day_of(first), first_day_of(max(first, current) + 1) - 1
    return _Months(first, last - first + 1, buckets_of(Period(date_of(start), date_of(end)), "month", (start, end)))


def _customer_months(tickets: Tickets, months: _Months) -> PurchaseDays:
    """Each customer with each month in which they bought; `day` of the result is an index of a month, not a day."""
    bought = purchases_of(tickets, months.buckets.window)
    month = months.buckets.index(bought.day)
    starts = np.flatnonzero(begins_of(bought.customer, month))
    return PurchaseDays(bought.customer[starts], month[starts])


def _find_cohorts(tickets: Tickets, months: _Months, pairs: PurchaseDays) -> Array:
    """The cohort of each customer, by customer number: the month of the first purchase.

    With chosen stores, only customers who bought at one of them in that month have a cohort.
    """
    firsts = first_days(tickets)
    window = months.buckets.window
    is_in_window = (firsts >= window[0]) & (firsts <= window[1])
    month = months.buckets.index(firsts[is_in_window])
    # There are at most 60 cohorts, and narrow numbers are looked up faster.
    first_month = np.full(tickets.customer_count, _NO_COHORT, np.int8)
    first_month[is_in_window] = np.where(month < months.cohorts, month, _NO_COHORT)
    if tickets.stores is None:
        return first_month
    is_first = first_month[pairs.customer] == pairs.day
    cohort = np.full(tickets.customer_count, _NO_COHORT, np.int8)
    cohort[pairs.customer[is_first]] = pairs.day[is_first]
    return cohort


def _count(months: _Months, pairs: PurchaseDays, cohort: Array) -> tuple[Array, Array]:
    """For each cohort and each month after its first: the customers who bought in the month, and those of them who
    bought again for the first time."""
    cohort_of_pair = cohort[pairs.customer]
    after = pairs.day - cohort_of_pair
    counted = cohort_of_pair != _NO_COHORT
    shape = months.cohorts, months.total
    indexes = cohort_of_pair * np.int32(months.total) + after
    # The months of a customer ascend, so in the second month the customer bought again for the first time.
    again = counted.copy()
    again[:1] = False
    again[1:] &= (after[:-1] == 0) & (pairs.customer[1:] == pairs.customer[:-1])
    return (
        np.bincount(indexes[counted], minlength=shape[0] * shape[1]).reshape(shape),
        np.bincount(indexes[again], minlength=shape[0] * shape[1]).reshape(shape),
    )


def _nets(tickets: Tickets, months: _Months, cohort: Array) -> Array:
    """The net of each cohort in each month after its first, in each currency. A return before the month of the first
    purchase is not counted."""
    shape = months.cohorts, months.total, len(tickets.currencies)
    size = shape[0] * shape[1] * shape[2]
    values = []
    for selection in tickets.select(months.buckets.window, of_customers=True):
        cohort_of_sale = cohort.take(selection.of("customer"))
        after = months.buckets.index_of(selection, tickets.zone) - cohort_of_sale
        # `kind >> 1` is the currency.
        indexes = (cohort_of_sale * np.int32(shape[1]) + after) * np.int32(shape[2]) + (selection.of("kind") >> 1)
        # Sales that are not counted are summed at one more index, which is cut off at the end.
        indexes[(cohort_of_sale == _NO_COHORT) | (after < 0)] = size
        values.append(Summands(indexes, selection.of("amount")))
    return sum_groups(values, size + 1)[:size].reshape(shape)
