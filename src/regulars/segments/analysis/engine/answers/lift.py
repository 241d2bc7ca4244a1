"""What two groups of customers spent in the same days: sums for the comparison in `segments/effect.py`.

The columns have no exact order of the sales of a day, which decides about returns. So customers who bought in the
window and returned something in its reach, a few in a hundred, are read from the rows.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np

from regulars.kit.db import Tx
from regulars.sales.customer_sales import LoadedSale, find_customer_sales, match_loaded
from regulars.sales.model import Currency
from regulars.sales.returned_lines import RETURN_WITHIN, net_cents
from regulars.segments.analysis.engine.answers.tickets import RefusedQuestion, Tickets, Window, date_of, window_of
from regulars.segments.analysis.engine.calendar import number_of
from regulars.segments.analysis.engine.customer_ids import find_numbers
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import SUM_MAX, Summands, sum_groups
from regulars.segments.analysis.questions import ArmPeople, ArmSums, LiftAnswer, LiftQuestion, LiftSums
from regulars.segments.effect import slope_of

BEFORE_DAYS: Final = 365
# A return of the last moment may come on the day after the last of its 30 days, where the clock has changed.
_RETURN_DAYS: Final = RETURN_WITHIN.days + 1
# Customers whose rows are read at a time.
READ_CUSTOMERS: Final = 2_000
# Customers are put into so many parts; random samples of the parts stand for random samples of the customers.
_PARTS: Final = 200
_SAMPLES: Final = 1_000
_INTERVAL: Final = (2.5, 97.5)
_TREATED, _HELD_OUT = range(2)
_NO_ARM: Final = -1


async def answer_lift(tx: Tx, organization_id: UUID, tickets: Tickets, question: LiftQuestion) -> LiftAnswer:
    groups = await asyncio.to_thread(Groups, tickets, question)
    since = groups.since
    for first in range(0, groups.returning.size, READ_CUSTOMERS):
        some = groups.returning[first : first + READ_CUSTOMERS].tolist()
        numbers = {tickets.cached.profile_of(number): number for number in some}
        sales = await find_customer_sales(tx, organization_id, dict.fromkeys(numbers, since))
        await asyncio.to_thread(groups.match, {numbers[profile_id]: some for profile_id, some in sales.items()})
    treated, held_out = groups.people
    sums = await asyncio.to_thread(lambda: tuple(groups.add_up()))
    return LiftAnswer(as_of=tx.now, treated=treated, held_out=held_out, sums=sums)


class _Sales(NamedTuple):
    customer: Array
    kind: Array
    amount: Array


class Groups:
    """Both groups by the numbers of their customers, and the sales of these."""

    def __init__(self, tickets: Tickets, question: LiftQuestion) -> None:
        self._tickets = tickets
        self._zone = ZoneInfo(tickets.zone.name)
        self._window = window_of(question.window)
        self._own_days = question.own_days
        self._arm = np.full(tickets.size, _NO_ARM, np.int8)
        # The first day of each customer's own window; None if all have the same.
        self._first: Array | None = None
        self._assign(question.treated, question.held_out)
        self.people = [int(np.count_nonzero(self._arm == arm)) for arm in (_TREATED, _HELD_OUT)]
        first, last = self._window
        frozen_on = number_of(question.frozen_on)
        self._before = list(self._select((frozen_on - BEFORE_DAYS, frozen_on - 1), own=(-BEFORE_DAYS, -1)))
        self._bought = [
            _where(sales, sales.kind & 1 == 0) for sales in self._select((first, last), own=(0, self._own_days))
        ]
        returns = self._select((first, last + _RETURN_DAYS), own=(0, self._own_days + _RETURN_DAYS))
        has_returned = self._mask(_where(sales, sales.kind & 1 == 1) for sales in returns)
        # The customers whose returns must be matched.
        self.returning = np.flatnonzero(self._mask(self._bought) & has_returned)
        # By currency: what such customers spent.
        self._matched: dict[str, dict[int, int]] = defaultdict(dict)

    def _assign(self, treated: ArmPeople, held_out: ArmPeople) -> None:
        ids, days = treated.profile_ids + held_out.profile_ids, treated.first_days + held_out.first_days
        if len(treated.profile_ids) % 16 or len(ids) % 16 or len(days) not in {0, len(ids) // 4}:
            raise RefusedQuestion("Each customer of a group has an id, and a first day if others have one.")
        numbers = find_numbers(self._tickets.cached, ids, self._tickets.members)
        are_found = numbers >= 0
        arms = np.repeat(
            np.array([_TREATED, _HELD_OUT], np.int8), [len(it.profile_ids) // 16 for it in (treated, held_out)]
        )
        self._arm[numbers[are_found]] = arms[are_found]
        if days:
            self._first = np.full(self._tickets.size, self._window[0], np.int32)
            self._first[numbers[are_found]] = np.frombuffer(days, "<i4")[are_found]

    def _select(self, window: Window, *, own: tuple[int, int]) -> Iterator[_Sales]:
        """The sales of the groups in a window; or in windows of the customers' own, from so many to so many days after
        the first day."""
        if self._first is not None:
            window = self._window[0] + min(0, own[0]), self._window[1] + max(0, own[1] - self._own_days)
        for selection in self._tickets.select(window, of_customers=True):
            customer = selection.of("customer")
            some = self._arm.take(customer) != _NO_ARM
            if self._first is not None:
                day = selection.days(self._tickets.zone) - self._first.take(customer)
                some &= (day >= own[0]) & (day <= own[1])
            yield _where(_Sales(customer, selection.of("kind"), selection.of("amount")), some)

    def _mask(self, sales: Iterator[_Sales] | Sequence[_Sales]) -> Array:
        mask = np.zeros(self._tickets.size, bool)
        for some in sales:
            mask[some.customer] = True
        return mask

    @property
    def since(self) -> datetime:
        """From which on the sales of returning customers are read."""
        return self._midnight(self._window[0])

    def _midnight(self, day: int) -> datetime:
        return datetime.combine(date_of(day), time(), self._zone).astimezone(UTC)

    def match(self, sales: Mapping[int, Sequence[LoadedSale]]) -> None:
        """Take the spend of these customers from their rows."""
        for number, some in sales.items():
            first, last = self._window
            if self._first is not None:
                first = int(self._first[number])
                last = first + self._own_days
            since, until = (self._midnight(day) for day in (first, last + 1))
            returned = match_loaded(some).returned_cents
            for sale in some:
                if not sale.is_return and since <= sale.occurred_at < until:
                    spent = self._matched[sale.currency]
                    spent[number] = spent.get(number, 0) + net_cents(sale.total_cents, returned.get(sale.id, 0))

    def add_up(self) -> Iterator[LiftSums]:
        """For each currency in which customers bought in the window."""
        size = self._tickets.size
        for code, currency in enumerate(self._tickets.currencies):
            bought = [_where(sales, sales.kind == 2 * code) for sales in self._bought]
            spend = sum_groups([Summands(sales.customer, sales.amount) for sales in bought], size)
            has_bought = self._mask(bought)
            spend[self.returning], has_bought[self.returning] = 0, False
            matched = self._matched[currency]
            numbers = np.fromiter(matched, np.intp, len(matched))
            spend[numbers], has_bought[numbers] = np.fromiter(matched.values(), np.int64, len(matched)), True
            if has_bought.any():
                inside = (_where(sales, sales.kind >> 1 == code) for sales in self._before)
                before = sum_groups([Summands(sales.customer, sales.amount) for sales in inside], size)
                yield self._sums(currency, spend, before, has_bought)

    def _sums(self, currency: Currency, spend: Array, before: Array, has_bought: Array) -> LiftSums:
        numbers = [np.flatnonzero(self._arm == arm) for arm in (_TREATED, _HELD_OUT)]
        treated, held_out = (_sums_of(spend[some], before[some], has_bought[some]) for some in numbers)
        adjusted = spend - slope_of(treated, held_out) * before
        chance = np.random.default_rng(0)
        means = [_sample_means(some, adjusted[some], chance) for some in numbers]
        low, high = np.percentile(means[_TREATED] - means[_HELD_OUT], _INTERVAL).tolist()
        return LiftSums(currency, treated, held_out, (low, high))


def _where(sales: _Sales, some: Array) -> _Sales:
    return sales if some.all() else _Sales(*(part[some] for part in sales))


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
    if values.size and values.size * max(abs(int(values.max())), abs(int(values.min()))) > SUM_MAX:
        raise OverflowError("a sum exceeds 64 bits")
    return int(values.sum())


def _sample_means(numbers: Array, values: Array, chance: np.random.Generator) -> Array:
    """The means of random samples of customers, who are taken part by part."""
    part = numbers % _PARTS
    sums, sizes = np.bincount(part, values, _PARTS), np.bincount(part, minlength=_PARTS)
    times = chance.multinomial(_PARTS, np.full(_PARTS, 1 / _PARTS), _SAMPLES)
    means: Array = (times @ sums) / np.maximum(1, times @ sizes)
    return means
