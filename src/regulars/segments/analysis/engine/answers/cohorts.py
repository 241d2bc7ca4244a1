"""Customers by the month of their first purchase: how many bought again, and what they spent."""

from datetime import datetime
from typing import NamedTuple

import numpy as np

from regulars.segments.analysis.engine.answers.purchases import all_purchases, first_days, purchases_of
from regulars.segments.analysis.engine.answers.tickets import (
    Tickets,
    date_of,
    first_day_of,
    money_of,
    months_of,
    window_of,
)
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import sum_groups
from regulars.segments.analysis.engine.purchase_days import PurchaseDays, begins_of
from regulars.segments.analysis.engine.sales_runs import EVER
from regulars.segments.analysis.questions import COHORTS_MAX, Cohort, CohortMonth, CohortsAnswer, CohortsQuestion

# The cohort of a customer in none.
_NONE = -1


class _Months(NamedTuple):
    """The months from the first cohort to the current one; some of the first are cohorts."""

    first: int
    cohorts: int
    all: int


def answer_cohorts(tickets: Tickets, question: CohortsQuestion, as_of: datetime) -> CohortsAnswer:
    months = _months(tickets, question)
    if months.cohorts <= 0:
        return CohortsAnswer(as_of=as_of, cohorts=())
    first_day = first_day_of(months.first)
    bought = purchases_of(tickets, (first_day, EVER[1]))
    month = months_of(bought.day) - months.first
    is_new_month = begins_of(bought.customer, month)
    pairs = PurchaseDays(bought.customer[is_new_month], month[is_new_month])
    cohort = _cohort_of_each(tickets, months, pairs)
    bought_in, again = _count(months, pairs, cohort)
    nets = _nets(tickets, months, cohort, first_day)
    so_far = again.cumsum(axis=1), nets.cumsum(axis=1)
    current = months.all - 1
    return CohortsAnswer(
        as_of=as_of,
        cohorts=tuple(
            Cohort(
                first=date_of(first_day_of(months.first + number)),
                customers=int(bought_in[number, 0]),
                months=tuple(
                    CohortMonth(
                        month=after,
                        bought=int(bought_in[number, after]),
                        bought_so_far=int(so_far[0][number, after]),
                        net_cents=money_of(tickets.currencies, nets[number, after]),
                        net_so_far_cents=money_of(tickets.currencies, so_far[1][number, after]),
                        is_over=number + after < current,
                    )
                    for after in range(months.all - number)
                ),
            )
            for number in range(months.cohorts)
        ),
    )


def _months(tickets: Tickets, question: CohortsQuestion) -> _Months:
    """Those of the period between the first sale and today, at most 60."""
    window = window_of(question.period)
    sales = tickets.first_and_last_day(of_customers=True)
    first, last = months_of(np.array([max(window[0], sales[0]), min(window[1], tickets.today)])).tolist()
    first = max(first, last - COHORTS_MAX + 1)
    return _Months(first, last - first + 1, int(months_of(np.array(tickets.today))) - first + 1)


def _cohort_of_each(tickets: Tickets, months: _Months, pairs: PurchaseDays) -> Array:
    """Of customers who bought at the chosen stores in the month of their first purchase."""
    firsts = first_days(all_purchases(tickets), tickets.size)
    first_month = months_of(firsts) - months.first
    is_first = first_month[pairs.customer] == pairs.day
    cohort = np.full(tickets.size, _NONE, np.int32)
    cohort[pairs.customer[is_first]] = pairs.day[is_first]
    cohort[cohort >= months.cohorts] = _NONE
    return cohort


def _count(months: _Months, pairs: PurchaseDays, cohort: Array) -> tuple[Array, Array]:
    """For each cohort and month after its first: customers who bought in it, and those who bought again for the first
    time in it."""
    of_pair = cohort[pairs.customer]
    after = pairs.day - of_pair
    counted = (of_pair != _NONE) & (after >= 0) & (pairs.day < months.all)
    shape = months.cohorts, months.all
    places = of_pair * months.all + after
    # The months of a customer ascend, so the second one is the first in which the customer bought again.
    is_second = np.zeros(counted.size, bool)
    is_second[1:] = (after[:-1] == 0) & (pairs.customer[1:] == pairs.customer[:-1])
    again = counted & is_second
    return (
        np.bincount(places[counted], minlength=shape[0] * shape[1]).reshape(shape),
        np.bincount(places[again], minlength=shape[0] * shape[1]).reshape(shape),
    )


def _nets(tickets: Tickets, months: _Months, cohort: Array, first_day: int) -> Array:
    """The net of each cohort in each month after its first, in each currency. A return before the month of the first
    purchase is in none."""
    shape = months.cohorts, months.all, len(tickets.currencies)
    last_day = first_day_of(months.first + months.all) - 1
    month_of_day = (months_of(np.arange(first_day, last_day + 1)) - months.first).astype(np.int32)
    values = []
    for selection in tickets.select((first_day, last_day), of_customers=True):
        of_sale = cohort[selection.of("customer")]
        after = month_of_day[selection.days(tickets.zone) - first_day] - of_sale
        counted = (of_sale != _NONE) & (after >= 0)
        places = (of_sale * shape[1] + after) * shape[2] + (selection.of("kind") >> 1)
        values.append((places[counted], selection.of("amount")[counted]))
    return sum_groups(values, shape[0] * shape[1] * shape[2]).reshape(shape)
