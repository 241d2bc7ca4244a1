"""Evaluates conditions on sales for all customers at once, over runs (stored chunks) of sales in memory; each result is
a mask of customers.

The kind of a sale is twice the code of its currency, plus 1 for a return.
"""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from typing import Final

import numpy as np

from regulars.columns.engine.cache import CachedColumns, Result
from regulars.columns.engine.calendar import DAY_S, Zone, number_of
from regulars.columns.engine.coded_values import NO, UNREADABLE, YES
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.numbers import SplitIntegers, are_within, sum_by_index
from regulars.columns.engine.purchase_days import purchase_days
from regulars.columns.engine.sales_runs import (
    ALL_DAYS,
    PRODUCT_IDS,
    PROPERTY_PREFIX,
    LineFilter,
    ProductTruth,
    SalesSelection,
    select_lines,
    select_window,
)
from regulars.columns.protocol import SegmentQuery
from regulars.conditions import tree
from regulars.conditions.check import is_valid_comparison
from regulars.conditions.comparisons import day_range_of_when, days_of, holds_on, matches_missing_value
from regulars.experiments.sums import WeeklySpend
from regulars.sales.model import Currency, millionths

# The local day and the UTC day of the same time differ by less than this.
_ZONE_DAYS_MAX: Final = 2
_FIRST_DAY, _LAST_DAY = ALL_DAYS
# The weeks over which the spend per customer is measured.
WEEKS: Final = 52

# The first and the last day, counted from 1970.
Window = tuple[int, int]


class SalesConditions:
    """Evaluates the sales conditions of one query; `zone` is the organization's time zone."""

    def __init__(self, cached: CachedColumns, query: SegmentQuery, zone: Zone) -> None:
        self._cached = cached
        self._query = query
        self._zone = zone

    def evaluate(self, condition: tree.SalesCondition) -> Result:
        """If the property of a line cannot be parsed, evaluate the condition with and without the line; the result is
        unknown for customers for whom the two results differ."""
        if condition.property is not None and not is_valid_comparison(condition.property, self._query.properties):
            return Result(np.zeros(self._cached.size, bool), np.ones(self._cached.size, bool))
        line_filter = self._line_filter(condition)
        holds = self._evaluate(condition, line_filter)
        unreadable = self._find_unreadable(line_filter)
        if line_filter is None or unreadable is None:
            return Result(holds)
        with_unreadable = self._evaluate(condition, line_filter.with_unreadable())
        return Result(holds & with_unreadable, holds ^ with_unreadable, unreadable)

    def _evaluate(self, condition: tree.SalesCondition, line_filter: LineFilter | None) -> Array:
        match condition:
            case tree.FirstPurchase() | tree.LastPurchase():
                return self._evaluate_day(condition, line_filter)
            case tree.TicketValue():
                return self._evaluate_ticket(condition, line_filter)
            case tree.Spend():
                return self._evaluate_sum(condition, line_filter, condition.at_least_cents, condition.at_most_cents)
            case tree.Bought(count="articles"):
                bounds = (condition.at_least, condition.at_most)
                return self._evaluate_sum(
                    condition, line_filter, *(None if bound is None else millionths(bound) for bound in bounds)
                )
            case tree.Bought() | tree.Returned():
                return self._evaluate_count(condition, line_filter)

    def _evaluate_count(self, condition: tree.CountCondition, line_filter: LineFilter | None) -> Array:
        """A mask of the customers whose number of matching sales, or of days with a matching sale, is within the
        bounds. With the bounds "at least 1" or "at most 0", the sales need not be counted."""
        low, high = (None if bound is None else int(bound) for bound in (condition.at_least, condition.at_most))
        if condition.none:
            low, high = None, 0
        elif low is None and high is None:
            low = 1
        window = self._window(condition)
        if high in {None, 0} and (low or 0) <= 1:
            has_match = self._find_customers(condition, line_filter, window)
            if high == 0:
                return ~has_match if (low or 0) == 0 else np.zeros_like(has_match)
            return has_match if low == 1 else np.ones_like(has_match)
        kinds = tuple(np.flatnonzero(self._kind_mask(condition)).tolist())
        key = ("times", tree.counts_days(condition), kinds, window, *self._cache_key(condition, line_filter))
        counts = self._find_or_compute(key, lambda: self._count_matches(condition, line_filter))
        return are_within((counts, None), low, high)

    def _count_matches(self, condition: tree.CountCondition, line_filter: LineFilter | None) -> Array:
        """How many sales of each customer match, or on how many days."""
        selections = self._select(condition, line_filter, self._window(condition))
        if tree.counts_days(condition):
            days = purchase_days([(selection.of("customer"), selection.days(self._zone)) for selection in selections])
            return np.bincount(days.customer, minlength=self._cached.size)
        times = np.zeros(self._cached.size, np.int64)
        for selection in selections:
            times += np.bincount(selection.of("customer"), minlength=self._cached.size)
        return times

    def _evaluate_day(self, condition: tree.FirstPurchase | tree.LastPurchase, line_filter: LineFilter | None) -> Array:
        """A mask of the customers whose first or last purchase matches. The first purchase is in a range of days if the
        customer bought in the range and not before it; the last purchase, if not after it."""
        when = condition.when
        bought = self._find_customers(condition, line_filter, ALL_DAYS)
        first, last, is_within = day_range_of_when(when, self._query.today)
        low, high = number_of(first), number_of(last)
        in_range = self._find_customers(condition, line_filter, (low, high))
        if isinstance(condition, tree.LastPurchase):
            in_range &= ~self._find_customers(condition, line_filter, (high + 1, _LAST_DAY))
        else:
            in_range &= ~self._find_customers(condition, line_filter, (_FIRST_DAY, low - 1))
        holds = in_range if is_within else bought & ~in_range
        matches_if_never_bought = holds_on(when, None, self._query.today)
        return holds | ~bought if matches_if_never_bought else holds

    def last_purchases(self) -> Array:
        """The day of each customer's last purchase; a day before all days for customers without a purchase."""
        condition = tree.Bought()

        def compute() -> Array:
            last = np.full(self._cached.size, _FIRST_DAY - 1, np.int64)
            for selection in self._select(condition, None, ALL_DAYS):
                np.maximum.at(last, selection.of("customer"), selection.days(self._zone).astype(np.int64))
            return last

        return self._find_or_compute(("last", *self._cache_key(condition, None)), compute)

    def spends(self, currency: Currency) -> SplitIntegers:
        """The net spend of each customer, over all time."""
        sums = self._sums(tree.Spend(currency=currency), None)
        return sums[0], sums[1]

    def weekly_spends(self, customers: Array) -> list[WeeklySpend]:
        """The net spend per customer and week in the last 52 weeks, for each currency in which the customers of this
        mask bought."""
        size = int(np.count_nonzero(customers))
        # Cached, because a user who edits a campaign requests the spend of the same customers again and again.
        digest = blake2b(np.packbits(customers).tobytes()).digest()
        spends = []
        for currency in self._cached.dictionaries.currencies.values:
            condition = tree.Spend(currency=currency)
            key = ("weekly spends", currency, digest, *self._cache_key(condition, None))
            buyers, buyer_weeks, total, squares = self._find_or_compute(
                key, partial(self._add_up_weeks, condition, customers)
            ).tolist()
            if buyers:
                mean = total / size / WEEKS
                variance = squares / size / WEEKS - mean * mean
                spends.append(WeeklySpend(currency, int(buyers), mean, variance, buyer_weeks / WEEKS))
        return spends

    def _add_up_weeks(self, condition: tree.Spend, customers: Array) -> Array:
        """Four numbers: the buyers, the buyers of each week added up, and the sum and the sum of squares of the net
        spend of each customer in each week.

        The square of a customer's net spend in a week is the sum of the customer's amounts, each times that net spend.
        So sales need not be grouped by customer.
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

    def _evaluate_sum(
        self, condition: tree.Spend | tree.Bought, line_filter: LineFilter | None, low: int | None, high: int | None
    ) -> Array:
        """A mask of the customers whose sum is within the bounds; the sum of a customer without sales is 0. The sums
        are cached, since a user who edits a bound requests the same sums again."""
        sums = self._sums(condition, line_filter)
        return are_within(sums[:2], None, 0) if condition.none else are_within(sums[:2], low, high)

    def _sums(self, condition: tree.Spend | tree.Bought, line_filter: LineFilter | None) -> Result:
        """The sum of each customer; the first two fields of the result are `SplitIntegers`."""
        kinds = tuple(np.flatnonzero(self._kind_mask(condition)).tolist())
        key = (
            "sums",
            isinstance(condition, tree.Spend),
            kinds,
            self._window(condition),
            *self._cache_key(condition, line_filter),
        )
        return self._cached.results.find_or_add(
            key, lambda: Result(*sum_by_index(list(self._summands(condition, line_filter)), self._cached.size))
        )

    def _summands(
        self, condition: tree.Spend | tree.Bought, line_filter: LineFilter | None
    ) -> Iterator[tuple[Array, Array]]:
        """For each run, an array of customer numbers, and an array of the cents or articles to add up for them."""
        for selection in self._select(condition, line_filter, self._window(condition)):
            if isinstance(condition, tree.Spend) and line_filter is None:
                yield selection.of("customer"), selection.of("amount")
            else:
                yield select_lines(selection, line_filter, "total" if isinstance(condition, tree.Spend) else "quantity")

    def _find_customers(self, condition: tree.SalesCondition, line_filter: LineFilter | None, window: Window) -> Array:
        """A mask of the customers with a matching sale in the window.

        The mask for all days is cached, because conditions on the first or last purchase need it too.
        """
        if window != ALL_DAYS:
            return self._mask_customers(condition, line_filter, window)
        key = ("all days", isinstance(condition, tree.Returned), *self._cache_key(condition, line_filter))
        return self._find_or_compute(key, lambda: self._mask_customers(condition, line_filter, window)).copy()

    def _cache_key(self, condition: tree.SalesCondition, line_filter: LineFilter | None) -> tuple[object, ...]:
        """The part of the cache key that does not depend on days and kinds of sales."""
        declared = None if condition.property is None else self._query.properties.get(condition.property.key)
        stores = tuple(self._query.stores.get(reference) for reference in condition.stores)
        key = (condition.products, condition.property, declared, stores, self._query.today, self._query.zone)
        includes_unreadable = line_filter is not None and line_filter.includes_unreadable
        return *key, includes_unreadable, self._cached.size, self._cached.sales_as_of

    def _find_or_compute(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        return self._cached.results.find_or_add(key, lambda: Result(compute())).holds

    def _mask_customers(self, condition: tree.SalesCondition, line_filter: LineFilter | None, window: Window) -> Array:
        holds = np.zeros(self._cached.size, bool)
        for selection in self._select(condition, line_filter, window):
            holds[selection.of("customer")] = True
        return holds

    def _evaluate_ticket(self, condition: tree.TicketValue, line_filter: LineFilter | None) -> Array:
        """A mask of the customers with a purchase whose value is in the range; with a product filter, the value is the
        total of its matching lines."""
        holds = np.zeros(self._cached.size, bool)
        low, high = condition.at_least_cents, condition.at_most_cents
        for selection in self._select(condition, line_filter, self._window(condition)):
            if line_filter is None:
                holds[selection.of("customer")[are_within((selection.of("amount"), None), low, high)]] = True
                continue
            run = selection.run
            sale, total = run.pick_lines(line_filter.match_products(run), "sale", "total")
            has_line = np.zeros(run.size, bool)
            has_line[sale] = True
            sales = np.flatnonzero(has_line & are_within(sum_by_index([(sale, total)], run.size), low, high))
            holds[run.parts["customer"][sales[selection.has(sales)]]] = True
        return holds

    def _select(
        self, condition: tree.SalesCondition, line_filter: LineFilter | None, window: Window
    ) -> Iterator[SalesSelection]:
        """The runs that overlap the window, each with its matching sales."""
        kinds = self._kind_mask(condition)
        stores = self._store_mask(condition)
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
            if line_filter is not None and not (
                tree.counts_articles(condition) or isinstance(condition, tree.Spend | tree.TicketValue)
            ):
                with_line = np.zeros(run.size, bool)
                with_line[run.pick_lines(line_filter.match_products(run), "sale")[0]] = True
                selection = selection.where(with_line[selection.first : selection.last])
            yield selection

    def _kind_mask(self, condition: tree.SalesCondition) -> Array:
        """A mask of the matching kinds of sales: purchases, returns or both, in one currency or in all."""
        currencies = self._cached.dictionaries.currencies
        kinds = np.zeros(2 * len(currencies) + 2, bool)
        is_purchase = not isinstance(condition, tree.Returned)
        is_return = isinstance(condition, tree.Returned | tree.Spend) or tree.counts_articles(condition)
        for code, currency in enumerate(currencies.values):
            if isinstance(condition, tree.Spend | tree.TicketValue) and currency != condition.currency:
                continue
            kinds[2 * code], kinds[2 * code + 1] = is_purchase, is_return
        return kinds

    def _store_mask(self, condition: tree.SalesCondition) -> Array | None:
        if not condition.stores:
            return None
        ids = self._query.stores
        return self._cached.dictionaries.stores.mask(ids[it].bytes for it in condition.stores if it in ids)

    def _line_filter(self, condition: tree.SalesCondition) -> LineFilter | None:
        """The filter of lines by product; None if the condition has none."""
        if not condition.products and condition.property is None:
            return None
        ids = None
        if condition.products:
            dictionary = self._cached.dictionaries.product_values(PRODUCT_IDS).dictionary
            ids = ProductTruth(PRODUCT_IDS, np.where(dictionary.mask(condition.products), YES, NO))
        compared = condition.property
        if compared is None:
            return LineFilter(ids, None)
        return LineFilter(ids, ProductTruth(PROPERTY_PREFIX + compared.key, self._truth_of_property(compared)))

    def _truth_of_property(self, compared: tree.OfProperty) -> Array:
        declared = self._query.properties.get(compared.key)
        values = self._cached.dictionaries.product_values(PROPERTY_PREFIX + compared.key)
        if declared is None:
            raise AssertionError(f"{compared.key} is not declared")
        parsed = values.parse_as(declared[0], declared[1], self._query.zone)
        truth = parsed.truth(compared, values.dictionary.values, self._query.today, self._cached.progress)
        return np.append(truth, YES if matches_missing_value(compared) else NO)

    def _find_unreadable(self, line_filter: LineFilter | None) -> Array | None:
        """A mask of the customers with a product whose property cannot be parsed; None if there is no such product."""
        if line_filter is None or line_filter.property is None or not (line_filter.property.truth == UNREADABLE).any():
            return None
        holds = np.zeros(self._cached.size, bool)
        for meta in self._cached.runs("sales"):
            run = self._cached.sales[meta.id]
            holds[run.parts["customer"][run.pick_lines(line_filter.unreadable(run), "sale")[0]]] = True
        return holds

    def _window(self, condition: tree.WindowedCondition) -> Window:
        first, last = days_of(condition.window, self._query.today)
        return number_of(first), number_of(last)


def _is_one_of(kinds: Array, matching: Array) -> Array:
    """Compare with each matching kind, since there are few; a table lookup takes twenty times as long."""
    selection = np.zeros(kinds.size, bool)
    for kind in np.flatnonzero(matching).tolist():
        selection |= kinds == kind
    return selection


def overlaps(first_s: int | None, last_s: int | None, window: Window) -> bool:
    """Whether sales between two times may be in a window of local days."""
    if first_s is None or last_s is None:
        return True
    return first_s // DAY_S - _ZONE_DAYS_MAX <= window[1] and last_s // DAY_S + _ZONE_DAYS_MAX >= window[0]
