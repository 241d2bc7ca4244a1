"""Evaluates conditions about sales over the runs of sales in memory, which are chunks of sales; the result is a mask of
customers."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final

import numpy as np

from regulars.catalog.model import AttributeType
from regulars.conditions import tree
from regulars.conditions.check import is_valid_comparison
from regulars.conditions.comparisons import days_of, holds_of_no_value, holds_on, span_of_when
from regulars.sales.model import Currency, millionths
from regulars.segments.analysis.engine.cache import CachedColumns, Result
from regulars.segments.analysis.engine.calendar import DAY_S, Zone, number_of
from regulars.segments.analysis.engine.coded_values import NO, UNREADABLE, YES
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import SplitIntegers, are_within, sum_by_index
from regulars.segments.analysis.engine.purchase_days import purchase_days
from regulars.segments.analysis.engine.sales_runs import (
    EVER,
    IDS,
    PROPERTY,
    LineFilter,
    ProductTruth,
    SalesSelection,
    select_lines,
    select_window,
)
from regulars.segments.analysis.protocol import SegmentQuery, SpendPerHead

# A local day and the UTC day of the same time differ by less than this.
_SLACK_DAYS: Final = 2
_FIRST_DAY, _LAST_DAY = EVER
# The weeks over which the spend per head is measured.
WEEKS: Final = 52

Types = dict[str, tuple[AttributeType, tuple[str, ...]]]


class SalesConditions:
    """Evaluates the sales conditions of one query; `zone` is the organization's."""

    def __init__(self, cached: CachedColumns, query: SegmentQuery, zone: Zone) -> None:
        self._cached = cached
        self._query = query
        self._zone = zone

    def evaluate(self, condition: tree.OfSales) -> Result:
        """If the property of a line is unreadable, the condition is evaluated with and without the line; the result is
        unknown for customers for whom the two differ."""
        if condition.property is not None and not is_valid_comparison(condition.property, self._query.properties):
            return Result(np.zeros(self._cached.size, bool), np.ones(self._cached.size, bool))
        lines = self._lines(condition)
        holds = self._holds(condition, lines)
        unreadable = self._unreadable(lines)
        if lines is None or unreadable is None:
            return Result(holds)
        with_unreadable = self._holds(condition, lines.with_unreadable())
        return Result(holds & with_unreadable, holds ^ with_unreadable, unreadable)

    def _holds(self, condition: tree.OfSales, lines: LineFilter | None) -> Array:
        match condition:
            case tree.FirstPurchase() | tree.LastPurchase():
                return self._holds_on_day(condition, lines)
            case tree.TicketValue():
                return self._has_ticket(condition, lines)
            case tree.Spend():
                return self._sums_within(condition, lines, condition.at_least_cents, condition.at_most_cents)
            case tree.Bought(count="articles"):
                bounds = (condition.at_least, condition.at_most)
                return self._sums_within(
                    condition, lines, *(None if bound is None else millionths(bound) for bound in bounds)
                )
            case tree.Bought() | tree.Returned():
                return self._holds_by_count(condition, lines)

    def _holds_by_count(self, condition: tree.OfTimes, lines: LineFilter | None) -> Array:
        low, high = (None if bound is None else int(bound) for bound in (condition.at_least, condition.at_most))
        if condition.none:
            low, high = None, 0
        elif low is None and high is None:
            low = 1
        window = self._window(condition)
        if high in {None, 0} and (low or 0) <= 1:
            if high == 0:
                has_none = ~self._has(condition, lines, window)
                return has_none if (low or 0) == 0 else np.zeros_like(has_none)
            return self._has(condition, lines, window) if low == 1 else np.ones(self._cached.size, bool)
        kinds = tuple(np.flatnonzero(self._kinds(condition)).tolist())
        key = ("times", tree.is_of_days(condition), kinds, window, *self._cache_key(condition, lines))
        return are_within((self._find_or_compute(key, lambda: self._times(condition, lines)), None), low, high)

    def _times(self, condition: tree.OfTimes, lines: LineFilter | None) -> Array:
        """How many sales of each customer match, or on how many days."""
        selections = self._select(condition, lines, self._window(condition))
        if tree.is_of_days(condition):
            days = purchase_days([(selection.of("customer"), selection.days(self._zone)) for selection in selections])
            return np.bincount(days.customer, minlength=self._cached.size)
        times = np.zeros(self._cached.size, np.int64)
        for selection in selections:
            times += np.bincount(selection.of("customer"), minlength=self._cached.size)
        return times

    def _holds_on_day(self, condition: tree.FirstPurchase | tree.LastPurchase, lines: LineFilter | None) -> Array:
        """The last purchase is in a range of days if the customer bought in it and not after it."""
        when = condition.when
        bought = self._has(condition, lines, EVER)
        first, last, is_within = span_of_when(when, self._query.today)
        low, high = number_of(first), number_of(last)
        in_range = self._has(condition, lines, (low, high))
        if isinstance(condition, tree.LastPurchase):
            in_range &= ~self._has(condition, lines, (high + 1, _LAST_DAY))
        else:
            in_range &= ~self._has(condition, lines, (_FIRST_DAY, low - 1))
        holds = in_range if is_within else bought & ~in_range
        return holds | ~bought if holds_on(when, None, self._query.today) else holds

    def last_purchases(self) -> Array:
        """The day of each customer's last purchase; a day before all days for customers without one."""
        condition = tree.Bought()

        def compute() -> Array:
            last = np.full(self._cached.size, _FIRST_DAY - 1, np.int64)
            for selection in self._select(condition, None, EVER):
                days = selection.run.days(self._zone).astype(np.int64)
                np.maximum.at(
                    last, selection.of("customer"), days if selection.picked is None else days[selection.picked]
                )
            return last

        return self._find_or_compute(("last", *self._cache_key(condition, None)), compute)

    def spends(self, currency: Currency) -> SplitIntegers:
        """The net spend of each customer, over all time."""
        sums = self._sums(tree.Spend(currency=currency), None)
        return sums[0], sums[1]

    def spend_per_head(self, customers: Array) -> list[SpendPerHead]:
        """The net spend of these customers in each of the last 52 weeks, for each currency in which they bought."""
        size = int(np.count_nonzero(customers))
        # A user who edits a campaign requests the spend of the same customers again and again.
        digest = blake2b(np.packbits(customers).tobytes()).digest()
        spends = []
        for currency in self._cached.dictionaries.currencies.values:
            condition = tree.Spend(currency=currency)
            key = ("per head", currency, digest, *self._cache_key(condition, None))
            buyers, buyer_weeks, total, squares = self._find_or_compute(
                key, partial(self._add_up_weeks, condition, customers)
            ).tolist()
            if buyers:
                mean = total / size / WEEKS
                variance = squares / size / WEEKS - mean * mean
                spends.append(SpendPerHead(currency, int(buyers), mean, variance, buyer_weeks / WEEKS))
        return spends

    def _add_up_weeks(self, condition: tree.Spend, customers: Array) -> Array:
        """The number of buyers, the sum of the buyers of each week, the sum of the net spend of all customers and
        weeks, and the sum of its squares.

        The square of a customer's sum equals the sum of each of the customer's amounts times that sum. So sales need
        not be grouped by customer.
        """
        today = number_of(self._query.today)
        has_bought = np.zeros(self._cached.size, bool)
        sums = np.zeros(self._cached.size, np.float64)
        buyer_weeks, total, squares = 0, 0.0, 0.0
        for first in range(today - 7 * WEEKS, today, 7):
            week = []
            bought_in_week = np.zeros(self._cached.size, bool)
            for selection in self._select(condition, None, (first, first + 6)):
                customer, amount = selection.of("customer"), selection.of("amount").astype(np.float64)
                is_chosen = customers[customer]
                customer, amount = customer[is_chosen], amount[is_chosen]
                bought_in_week[customer[selection.of("kind")[is_chosen] & 1 == 0]] = True
                np.add.at(sums, customer, amount)
                week.append((customer, amount))
            has_bought |= bought_in_week
            buyer_weeks += int(np.count_nonzero(bought_in_week))
            for customer, amount in week:
                total += float(amount.sum())
                squares += float(amount @ sums[customer])
            for customer, _ in week:
                sums[customer] = 0.0
        return np.array([np.count_nonzero(has_bought), buyer_weeks, total, squares])

    def _sums_within(
        self, condition: tree.Spend | tree.Bought, lines: LineFilter | None, low: int | None, high: int | None
    ) -> Array:
        """A mask of the customers whose sum is within the bounds; the sum of a customer without sales is 0. The sums
        are cached, since a user who edits a bound requests the same sums again."""
        sums = self._sums(condition, lines)
        return are_within(sums[:2], None, 0) if condition.none else are_within(sums[:2], low, high)

    def _sums(self, condition: tree.Spend | tree.Bought, lines: LineFilter | None) -> Result:
        kinds = tuple(np.flatnonzero(self._kinds(condition)).tolist())
        key = (
            "sums",
            isinstance(condition, tree.Spend),
            kinds,
            self._window(condition),
            *self._cache_key(condition, lines),
        )
        return self._cached.results.find(key) or self._cached.results.add(
            key, Result(*sum_by_index(list(self._values(condition, lines)), self._cached.size))
        )

    def _values(self, condition: tree.Spend | tree.Bought, lines: LineFilter | None) -> Iterator[tuple[Array, Array]]:
        """Per run: customer numbers, and one value to sum for each."""
        for selection in self._select(condition, lines, self._window(condition)):
            if isinstance(condition, tree.Spend) and lines is None:
                yield selection.of("customer"), selection.of("amount")
            else:
                yield select_lines(selection, lines, "total" if isinstance(condition, tree.Spend) else "quantity")

    def _has(self, condition: tree.OfSales, lines: LineFilter | None, window: tuple[int, int]) -> Array:
        """Which customers have a matching sale in the window.

        The result for all days is cached separately, because conditions on the first or last purchase need it too.
        """
        if window != EVER:
            return self._find_any(condition, lines, window)
        key = ("ever", isinstance(condition, tree.Returned), *self._cache_key(condition, lines))
        return self._find_or_compute(key, lambda: self._find_any(condition, lines, window)).copy()

    def _cache_key(self, condition: tree.OfSales, lines: LineFilter | None) -> tuple[object, ...]:
        """The part of the cache key that does not depend on days and kinds of sales."""
        declared = None if condition.property is None else self._query.properties.get(condition.property.key)
        stores = tuple(self._query.stores.get(reference) for reference in condition.stores)
        key = (condition.products, condition.property, declared, stores, self._query.today, self._query.zone)
        return *key, lines is not None and lines.includes_unreadable, self._cached.size, self._cached.sales_as_of

    def _find_or_compute(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        result = self._cached.results.find(key)
        return (result or self._cached.results.add(key, Result(compute()))).holds

    def _find_any(self, condition: tree.OfSales, lines: LineFilter | None, window: tuple[int, int]) -> Array:
        holds = np.zeros(self._cached.size, bool)
        for selection in self._select(condition, lines, window):
            holds[selection.of("customer")] = True
        return holds

    def _has_ticket(self, condition: tree.TicketValue, lines: LineFilter | None) -> Array:
        """Which customers have a purchase whose value is in the range; with a product filter, the value is the total of
        its matching lines."""
        holds = np.zeros(self._cached.size, bool)
        low, high = condition.at_least_cents, condition.at_most_cents
        for selection in self._select(condition, lines, self._window(condition)):
            if lines is None:
                holds[selection.of("customer")[are_within((selection.of("amount"), None), low, high)]] = True
                continue
            run = selection.run
            sale, total = run.pick(lines.passing(run), "sale", "total")
            has_line = np.zeros(run.size, bool)
            has_line[sale] = True
            sales = np.flatnonzero(has_line & are_within(sum_by_index([(sale, total)], run.size), low, high))
            holds[run.parts["customer"][sales[selection.has(sales)]]] = True
        return holds

    def _select(
        self, condition: tree.OfSales, lines: LineFilter | None, window: tuple[int, int]
    ) -> Iterator[SalesSelection]:
        """The runs that overlap the window, each with its matching sales."""
        kinds = self._kinds(condition)
        stores = self._stores(condition)
        for meta in self._cached.runs("sales"):
            if not overlaps(meta.first_s, meta.last_s, window):
                continue
            run = self._cached.sales[meta.id]
            selection = select_window(run, window, self._zone)
            if selection.first >= selection.last:
                continue
            kind = selection.all_of("kind")
            if not kinds[kind.min() : kind.max() + 1].all():
                selection = selection.where(_is_one_of(kind, kinds))
            if stores is not None:
                selection = selection.where(stores[selection.all_of("store")])
            if lines is not None and not (
                tree.is_net_articles(condition) or isinstance(condition, tree.Spend | tree.TicketValue)
            ):
                with_line = np.zeros(run.size, bool)
                with_line[run.pick(lines.passing(run), "sale")[0]] = True
                selection = selection.where(with_line[selection.first : selection.last])
            yield selection

    def _kinds(self, condition: tree.OfSales) -> Array:
        """A mask by `kind`, which is twice the code of the currency plus 1 for a return: purchases, returns or both
        match, in one currency or in all."""
        currencies = self._cached.dictionaries.currencies
        kinds = np.zeros(2 * len(currencies) + 2, bool)
        is_purchase = not isinstance(condition, tree.Returned)
        is_return = isinstance(condition, tree.Returned | tree.Spend) or tree.is_net_articles(condition)
        for code, currency in enumerate(currencies.values):
            if isinstance(condition, tree.Spend | tree.TicketValue) and currency != condition.currency:
                continue
            kinds[2 * code], kinds[2 * code + 1] = is_purchase, is_return
        return kinds

    def _stores(self, condition: tree.OfSales) -> Array | None:
        if not condition.stores:
            return None
        stores = np.zeros(len(self._cached.dictionaries.stores) + 1, bool)
        for reference in condition.stores:
            identifier = self._query.stores.get(reference)
            code = -1 if identifier is None else self._cached.dictionaries.stores.find(identifier.bytes)
            if code >= 0:
                stores[code] = True
        return stores

    def _lines(self, condition: tree.OfSales) -> LineFilter | None:
        """The filter of lines by product; None if the condition has none."""
        if not condition.products and condition.property is None:
            return None
        ids = ProductTruth(IDS, self._truth_of_ids(condition.products)) if condition.products else None
        wanted = condition.property
        return LineFilter(
            ids, None if wanted is None else ProductTruth(PROPERTY + wanted.key, self._truth_of_property(wanted))
        )

    def _truth_of_ids(self, products: Sequence[str]) -> Array:
        dictionary = self._cached.dictionaries.product_values(IDS).dictionary
        truth = np.full(len(dictionary) + 1, NO)
        truth[[code for product in products if (code := dictionary.find(product)) >= 0]] = YES
        return truth

    def _truth_of_property(self, wanted: tree.OfProperty) -> Array:
        declared = self._query.properties.get(wanted.key)
        values = self._cached.dictionaries.product_values(PROPERTY + wanted.key)
        if declared is None:
            raise AssertionError(f"{wanted.key} is not declared")
        parsed = values.parse_as(declared[0], declared[1], self._query.zone)
        truth = parsed.truth(wanted, values.dictionary.values, self._query.today, self._cached.progress)
        return np.append(truth, YES if holds_of_no_value(wanted) else NO)

    def _unreadable(self, lines: LineFilter | None) -> Array | None:
        if lines is None or lines.property is None or not (lines.property.truth == UNREADABLE).any():
            return None
        holds = np.zeros(self._cached.size, bool)
        for meta in self._cached.runs("sales"):
            run = self._cached.sales[meta.id]
            holds[run.parts["customer"][run.pick(lines.unreadable(run), "sale")[0]]] = True
        return holds

    def _window(self, condition: tree.OfTimes | tree.Spend | tree.TicketValue) -> tuple[int, int]:
        first, last = days_of(condition.window, self._query.today)
        return number_of(first), number_of(last)


def _is_one_of(kinds: Array, wanted: Array) -> Array:
    """Compare with each wanted kind, since there are few; a table lookup takes twenty times as long."""
    selection = np.zeros(kinds.size, bool)
    for kind in np.flatnonzero(wanted).tolist():
        selection |= kinds == kind
    return selection


def overlaps(first_s: int | None, last_s: int | None, window: tuple[int, int]) -> bool:
    if first_s is None or last_s is None:
        return True
    return first_s // DAY_S - _SLACK_DAYS <= window[1] and last_s // DAY_S + _SLACK_DAYS >= window[0]
