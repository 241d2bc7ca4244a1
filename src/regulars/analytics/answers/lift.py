"""Answers the question what two groups of customers spent in the same days; `experiments/effect.py` compares the sums.

The matching of returns depends on the exact order of the sales of a day, which the columnar data does not have. So the
sales of customers who bought in the window, and returned something in it or in the 30 days after it, are read from the
sales table; they are a few in a hundred.

An arm is one of the two groups: treated or held out. A customer is identified by an index, which is the position in the
customer columns. The `kind` of a sale is twice the code of its currency, plus 1 for a return.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np

from regulars.analytics.answers.tickets import RefusedQuestion, Tickets, Window, date_of, window_of
from regulars.columns.engine.calendar import number_of
from regulars.columns.engine.customer_ids import find_numbers
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.numbers import SUM_MAX, Summands, sum_bound, sum_groups
from regulars.columns.questions import ArmPeople, LiftAnswer, LiftQuestion, LiftSums
from regulars.experiments.effect import slope_of
from regulars.experiments.sums import ArmSums
from regulars.kit.db import Tx
from regulars.sales.customer_sales import LoadedSale, find_customer_sales, match_loaded
from regulars.sales.model import Currency
from regulars.sales.returned_lines import RETURN_WITHIN, net_cents

BEFORE_DAYS: Final = 365
# One day more than 30, because a change to or from summer time can move a return at the end to the next calendar day.
_RETURN_DAYS: Final = RETURN_WITHIN.days + 1
# The sales of this many customers are read from the sales table at a time.
BATCH_CUSTOMERS: Final = 2_000
# Bootstrap: samples consist of parts of the customers instead of single customers, which is faster.
_PARTS: Final = 200
_SAMPLES: Final = 1_000
_INTERVAL_PERCENTILES: Final = (2.5, 97.5)
_TREATED, _HELD_OUT = range(2)
_NO_ARM: Final = -1


async def answer_lift(tx: Tx, organization_id: UUID, tickets: Tickets, question: LiftQuestion) -> LiftAnswer:
    groups = await asyncio.to_thread(ComparedGroups, tickets, question)
    since = groups.since
    for first in range(0, groups.with_returns.size, BATCH_CUSTOMERS):
        batch = groups.with_returns[first : first + BATCH_CUSTOMERS].tolist()
        indexes = {tickets.cached.profile_of(index): index for index in batch}
        sales = await find_customer_sales(tx, organization_id, dict.fromkeys(indexes, since))
        await asyncio.to_thread(groups.match, {indexes[profile_id]: rows for profile_id, rows in sales.items()})
    treated, held_out = groups.people
    sums = await asyncio.to_thread(lambda: tuple(groups.add_up()))
    return LiftAnswer(as_of=tx.now, treated=treated, held_out=held_out, sums=sums)


class _Sales(NamedTuple):
    customer: Array
    kind: Array
    amount: Array


class ComparedGroups:
    """Both groups of customers, with their sales."""

    def __init__(self, tickets: Tickets, question: LiftQuestion) -> None:
        self._tickets = tickets
        self._zone = ZoneInfo(tickets.zone.name)
        self._window = window_of(question.window)
        self._own_days = question.own_days
        self._arm = np.full(tickets.customer_count, _NO_ARM, np.int8)
        # The first day of each customer's separate window, by customer index; None if all customers have the same
        # window.
        self._first_days: Array | None = None
        self._assign(question.treated, question.held_out)
        self.people = [int(np.count_nonzero(self._arm == arm)) for arm in (_TREATED, _HELD_OUT)]
        first, last = self._window
        # The day on which the customers were assigned to the groups.
        assigned_on = number_of(question.frozen_on)
        self._before = list(
            self._select((assigned_on - BEFORE_DAYS, assigned_on - 1), days_after_first=(-BEFORE_DAYS, -1))
        )
        self._bought = [
            _filter_sales(sales, sales.kind & 1 == 0)
            for sales in self._select((first, last), days_after_first=(0, self._own_days))
        ]
        returns = self._select((first, last + _RETURN_DAYS), days_after_first=(0, self._own_days + _RETURN_DAYS))
        has_returned = self._mask(_filter_sales(sales, sales.kind & 1 == 1) for sales in returns)
        # The customers whose returns must be matched.
        self.with_returns = np.flatnonzero(self._mask(self._bought) & has_returned)
        # What these customers spent, by currency and customer index.
        self._spend_with_returns: dict[str, dict[int, int]] = defaultdict(dict)

    def _assign(self, treated: ArmPeople, held_out: ArmPeople) -> None:
        ids, days = treated.profile_ids + held_out.profile_ids, treated.first_days + held_out.first_days
        if len(treated.profile_ids) % 16 or len(ids) % 16 or len(days) not in {0, len(ids) // 4}:
            raise RefusedQuestion("Each customer of a group has an id, and a first day if others have one.")
        indexes = find_numbers(self._tickets.cached, ids, self._tickets.members)
        are_found = indexes >= 0
        arms = np.repeat(
            np.array([_TREATED, _HELD_OUT], np.int8), [len(group.profile_ids) // 16 for group in (treated, held_out)]
        )
        self._arm[indexes[are_found]] = arms[are_found]
        if days:
            self._first_days = np.full(self._tickets.customer_count, self._window[0], np.int32)
            self._first_days[indexes[are_found]] = np.frombuffer(days, "<i4")[are_found]

    def _select(self, window: Window, *, days_after_first: tuple[int, int]) -> Iterator[_Sales]:
        """The sales of both groups in the window or, if each customer has a separate window, in the range
        `days_after_first`, counted from the first day of that customer's window."""
        if self._first_days is not None:
            window = (
                self._window[0] + min(0, days_after_first[0]),
                self._window[1] + max(0, days_after_first[1] - self._own_days),
            )
        for selection in self._tickets.select(window, of_customers=True):
            customer = selection.of("customer")
            mask = self._arm.take(customer) != _NO_ARM
            if self._first_days is not None:
                day = selection.days(self._tickets.zone) - self._first_days.take(customer)
                mask &= (day >= days_after_first[0]) & (day <= days_after_first[1])
            yield _filter_sales(_Sales(customer, selection.of("kind"), selection.of("amount")), mask)

    def _mask(self, sales: Iterator[_Sales] | Sequence[_Sales]) -> Array:
        mask = np.zeros(self._tickets.customer_count, bool)
        for batch in sales:
            mask[batch.customer] = True
        return mask

    @property
    def since(self) -> datetime:
        """The start of the sales that are read for customers with returns."""
        return self._midnight(self._window[0])

    def _midnight(self, day: int) -> datetime:
        return datetime.combine(date_of(day), time(), self._zone).astimezone(UTC)

    def match(self, sales: Mapping[int, Sequence[LoadedSale]]) -> None:
        """Compute the spend of these customers from their sales in the sales table."""
        for index, sales_of_customer in sales.items():
            first, last = self._window
            if self._first_days is not None:
                first = int(self._first_days[index])
                last = first + self._own_days
            since, until = (self._midnight(day) for day in (first, last + 1))
            returned = match_loaded(sales_of_customer).returned_cents
            for sale in sales_of_customer:
                if not sale.is_return and since <= sale.occurred_at < until:
                    spent = self._spend_with_returns[sale.currency]
                    spent[index] = spent.get(index, 0) + net_cents(sale.total_cents, returned.get(sale.id, 0))

    def add_up(self) -> Iterator[LiftSums]:
        """The sums for each currency in which customers bought in the window."""
        size = self._tickets.customer_count
        for code, currency in enumerate(self._tickets.currencies):
            bought = [_filter_sales(sales, sales.kind == 2 * code) for sales in self._bought]
            spend = sum_groups([Summands(sales.customer, sales.amount) for sales in bought], size)
            has_bought = self._mask(bought)
            spend[self.with_returns], has_bought[self.with_returns] = 0, False
            matched = self._spend_with_returns[currency]
            indexes = np.fromiter(matched, np.intp, len(matched))
            spend[indexes], has_bought[indexes] = np.fromiter(matched.values(), np.int64, len(matched)), True
            if has_bought.any():
                of_currency = (_filter_sales(sales, sales.kind >> 1 == code) for sales in self._before)
                before = sum_groups([Summands(sales.customer, sales.amount) for sales in of_currency], size)
                yield self._sums(currency, spend, before, has_bought)

    def _sums(self, currency: Currency, spend: Array, before: Array, has_bought: Array) -> LiftSums:
        groups = [np.flatnonzero(self._arm == arm) for arm in (_TREATED, _HELD_OUT)]
        treated, held_out = (_sums_of(spend[indexes], before[indexes], has_bought[indexes]) for indexes in groups)
        adjusted = spend - slope_of(treated, held_out) * before
        rng = np.random.default_rng(0)
        means = [_sample_means(indexes, adjusted[indexes], rng) for indexes in groups]
        low, high = np.percentile(means[_TREATED] - means[_HELD_OUT], _INTERVAL_PERCENTILES).tolist()
        return LiftSums(currency, treated, held_out, (low, high))


def _filter_sales(sales: _Sales, mask: Array) -> _Sales:
    return sales if mask.all() else _Sales(*(part[mask] for part in sales))


def _sums_of(spend: Array, before: Array, has_bought: Array) -> ArmSums:
    exact = [_exact_sum(values) for values in (spend, before)]
    spent, earlier = spend.astype(np.float64), before.astype(np.float64)
    return ArmSums(
        people=spend.size,
        buyers=int(np.count_nonzero(has_bought)),
        spend_cents=exact[0],
        spend_squares=float(spent @ spent),
        before_cents=exact[1],
        before_squares=float(earlier @ earlier),
        products=float(spent @ earlier),
    )


def _exact_sum(values: Array) -> int:
    if sum_bound(values) > SUM_MAX:
        raise OverflowError("a sum exceeds 64 bits")
    return int(values.sum())


def _sample_means(indexes: Array, values: Array, rng: np.random.Generator) -> Array:
    """The means of random samples of customers, which consist of whole parts, drawn with replacement."""
    part = indexes % _PARTS
    sums, sizes = np.bincount(part, values, _PARTS), np.bincount(part, minlength=_PARTS)
    draws = rng.multinomial(_PARTS, np.full(_PARTS, 1 / _PARTS), _SAMPLES)
    means: Array = (draws @ sums) / np.maximum(1, draws @ sizes)
    return means
