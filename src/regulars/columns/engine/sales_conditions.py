"""Evaluates conditions on sales for all customers at once, over runs (stored chunks) of sales in memory; each result is
a mask of customers.

The kind of a sale is twice the code of its currency, plus 1 for a return.
"""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from typing import Final, Literal

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
from regulars.conditions.check import is_valid_comparison
from regulars.conditions.column_protocol import Measure, SalesScope
from regulars.conditions.comparisons import day_range_of_when, days_of, holds_on, matches_missing_value
from regulars.conditions.field_types import OfProperty, When
from regulars.experiments.sums import WeeklySpend
from regulars.sales.model import Currency

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

    def within(self, scope: SalesScope, measure: Measure, low: int | None, high: int | None) -> Result:
        """Whether a measure of each customer's sales is within the limits."""
        if measure in {"tickets", "days"}:
            return self._evaluate(scope, lambda lines: self._count_within(scope, measure, lines, low, high))
        return self._evaluate(scope, lambda lines: are_within(self._sums(scope, measure, lines)[:2], low, high))

    def has_ticket(self, scope: SalesScope, low: int | None, high: int | None) -> Result:
        """Whether the amount of at least one of each customer's tickets is within the limits."""
        return self._evaluate(scope, lambda lines: self._has_ticket(scope, lines, low, high))

    def purchased(self, scope: SalesScope, which: Literal["first", "last"], when: When) -> Result:
        """Whether the day of each customer's first or last ticket matches."""
        return self._evaluate(scope, lambda lines: self._purchased(scope, which, when, lines))

    def _evaluate(self, scope: SalesScope, evaluate: Callable[[LineFilter | None], Array]) -> Result:
        """If the property of a line cannot be parsed, evaluate the condition with and without the line; the result is
        unknown for customers for whom the two results differ."""
        if scope.property is not None and not is_valid_comparison(scope.property, self._query.properties):
            return Result(np.zeros(self._cached.size, bool), np.ones(self._cached.size, bool))
        line_filter = self._line_filter(scope)
        holds = evaluate(line_filter)
        unreadable = self._find_unreadable(line_filter)
        if line_filter is None or unreadable is None:
            return Result(holds)
        with_unreadable = evaluate(line_filter.with_unreadable())
        return Result(holds & with_unreadable, holds ^ with_unreadable, unreadable)

    def _count_within(
        self, scope: SalesScope, measure: Measure, line_filter: LineFilter | None, low: int | None, high: int | None
    ) -> Array:
        """A mask of the customers whose number of matching sales, or of days with a matching sale, is within the
        bounds. With the bounds "at least 1" or "at most 0", the sales need not be counted."""
        window = self._window(scope)
        if high in {None, 0} and (low or 0) <= 1:
            has_match = self._find_customers(scope, line_filter, window)
            if high == 0:
                return ~has_match if (low or 0) == 0 else np.zeros_like(has_match)
            return has_match if low == 1 else np.ones_like(has_match)
        key = ("times", measure, window, *self._cache_key(scope, line_filter))
        counts = self._find_or_compute(key, lambda: self._count_matches(scope, measure, line_filter))
        return are_within((counts, None), low, high)

    def _count_matches(self, scope: SalesScope, measure: Measure, line_filter: LineFilter | None) -> Array:
        """How many sales of each customer match, or on how many days."""
        selections = self._select(scope, line_filter, self._window(scope))
        if measure == "days":
            days = purchase_days([(selection.of("customer"), selection.days(self._zone)) for selection in selections])
            return np.bincount(days.customer, minlength=self._cached.size)
        times = np.zeros(self._cached.size, np.int64)
        for selection in selections:
            times += np.bincount(selection.of("customer"), minlength=self._cached.size)
        return times

    def _purchased(
        self, scope: SalesScope, which: Literal["first", "last"], when: When, line_filter: LineFilter | None
    ) -> Array:
        """A mask of the customers whose first or last purchase matches. The first purchase is in a range of days if the
        customer bought in the range and not before it; the last purchase, if not after it."""
        bought = self._find_customers(scope, line_filter, ALL_DAYS)
        first, last, is_within = day_range_of_when(when, self._query.today)
        low, high = number_of(first), number_of(last)
        in_range = self._find_customers(scope, line_filter, (low, high))
        outside = (high + 1, _LAST_DAY) if which == "last" else (_FIRST_DAY, low - 1)
        in_range &= ~self._find_customers(scope, line_filter, outside)
        holds = in_range if is_within else bought & ~in_range
        matches_if_never_bought = holds_on(when, None, self._query.today)
        return holds | ~bought if matches_if_never_bought else holds

    def last_purchases(self) -> Array:
        """The day of each customer's last purchase; a day before all days for customers without a purchase."""
        scope = SalesScope("purchases")

        def compute() -> Array:
            last = np.full(self._cached.size, _FIRST_DAY - 1, np.int64)
            for selection in self._select(scope, None, ALL_DAYS):
                np.maximum.at(last, selection.of("customer"), selection.days(self._zone).astype(np.int64))
            return last

        return self._find_or_compute(("last", *self._cache_key(scope, None)), compute)

    def spends(self, currency: Currency) -> SplitIntegers:
        """The net spend of each customer, over all time."""
        sums = self._sums(SalesScope("all", currency), "cents", None)
        return sums[0], sums[1]

    def weekly_spends(self, customers: Array) -> list[WeeklySpend]:
        """The net spend per customer and week in the last 52 weeks, for each currency in which the customers of this
        mask bought."""
        size = int(np.count_nonzero(customers))
        # Cached, because a user who edits a campaign requests the spend of the same customers again and again.
        digest = blake2b(np.packbits(customers).tobytes()).digest()
        spends = []
        for currency in self._cached.dictionaries.currencies.values:
            scope = SalesScope("all", currency)
            key = ("weekly spends", digest, *self._cache_key(scope, None))
            buyers, buyer_weeks, total, squares = self._find_or_compute(
                key, partial(self._add_up_weeks, scope, customers)
            ).tolist()
            if buyers:
                mean = total / size / WEEKS
                variance = squares / size / WEEKS - mean * mean
                spends.append(WeeklySpend(currency, int(buyers), mean, variance, buyer_weeks / WEEKS))
        return spends

    def _add_up_weeks(self, scope: SalesScope, customers: Array) -> Array:
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
            for selection in self._select(scope, None, (first, first + 6)):
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

    def _sums(self, scope: SalesScope, measure: Measure, line_filter: LineFilter | None) -> Result:
        """The sum of each customer, which is 0 without sales; the first two fields of the result are `SplitIntegers`.
        The sums are cached, since a user who edits a bound requests the same sums again."""
        key = ("sums", measure, self._window(scope), *self._cache_key(scope, line_filter))
        return self._cached.results.find_or_add(
            key, lambda: Result(*sum_by_index(list(self._summands(scope, measure, line_filter)), self._cached.size))
        )

    def _summands(
        self, scope: SalesScope, measure: Measure, line_filter: LineFilter | None
    ) -> Iterator[tuple[Array, Array]]:
        """For each run, an array of customer numbers, and an array of the cents or articles to add up for them."""
        for selection in self._select(scope, line_filter, self._window(scope), counts_lines=True):
            if measure == "cents" and line_filter is None:
                yield selection.of("customer"), selection.of("amount")
            else:
                yield select_lines(selection, line_filter, "total" if measure == "cents" else "quantity")

    def _find_customers(self, scope: SalesScope, line_filter: LineFilter | None, window: Window) -> Array:
        """A mask of the customers with a matching sale in the window.

        The mask for all days is cached, because conditions on the first or last purchase need it too.
        """
        if window != ALL_DAYS:
            return self._mask_customers(scope, line_filter, window)
        key = ("all days", *self._cache_key(scope, line_filter))
        return self._find_or_compute(key, lambda: self._mask_customers(scope, line_filter, window)).copy()

    def _cache_key(self, scope: SalesScope, line_filter: LineFilter | None) -> tuple[object, ...]:
        """The part of the cache key that does not depend on days."""
        declared = None if scope.property is None else self._query.properties.get(scope.property.key)
        stores = tuple(self._query.stores.get(reference) for reference in scope.stores)
        key = (scope.types, scope.currency, scope.products, scope.property, declared, stores)
        includes_unreadable = line_filter is not None and line_filter.includes_unreadable
        as_of = (self._query.today, self._query.zone, self._cached.size, self._cached.sales_as_of)
        return *key, *as_of, includes_unreadable

    def _find_or_compute(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        return self._cached.results.find_or_add(key, lambda: Result(compute())).holds

    def _mask_customers(self, scope: SalesScope, line_filter: LineFilter | None, window: Window) -> Array:
        holds = np.zeros(self._cached.size, bool)
        for selection in self._select(scope, line_filter, window):
            holds[selection.of("customer")] = True
        return holds

    def _has_ticket(
        self, scope: SalesScope, line_filter: LineFilter | None, low: int | None, high: int | None
    ) -> Array:
        """A mask of the customers with a purchase whose value is in the range; with a product filter, the value is the
        total of its matching lines."""
        holds = np.zeros(self._cached.size, bool)
        for selection in self._select(scope, line_filter, self._window(scope), counts_lines=True):
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
        self, scope: SalesScope, line_filter: LineFilter | None, window: Window, *, counts_lines: bool = False
    ) -> Iterator[SalesSelection]:
        """The runs that overlap the window, each with its matching sales; with `counts_lines` also those without a
        matching line, since the caller selects the lines."""
        kinds = self._kind_mask(scope)
        stores = self._store_mask(scope)
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
            if line_filter is not None and not counts_lines:
                with_line = np.zeros(run.size, bool)
                with_line[run.pick_lines(line_filter.match_products(run), "sale")[0]] = True
                selection = selection.where(with_line[selection.first : selection.last])
            yield selection

    def _kind_mask(self, scope: SalesScope) -> Array:
        """A mask of the matching kinds of sales: purchases, returns or both, in one currency or in all."""
        currencies = self._cached.dictionaries.currencies
        kinds = np.zeros(2 * len(currencies) + 2, bool)
        for code, currency in enumerate(currencies.values):
            if scope.currency in {None, currency}:
                kinds[2 * code], kinds[2 * code + 1] = scope.types != "returns", scope.types != "purchases"
        return kinds

    def _store_mask(self, scope: SalesScope) -> Array | None:
        if not scope.stores:
            return None
        ids = self._query.stores
        return self._cached.dictionaries.stores.mask(ids[it].bytes for it in scope.stores if it in ids)

    def _line_filter(self, scope: SalesScope) -> LineFilter | None:
        """The filter of lines by product; None if the condition has none."""
        if not scope.products and scope.property is None:
            return None
        ids = None
        if scope.products:
            dictionary = self._cached.dictionaries.product_values(PRODUCT_IDS).dictionary
            ids = ProductTruth(PRODUCT_IDS, np.where(dictionary.mask(scope.products), YES, NO))
        compared = scope.property
        if compared is None:
            return LineFilter(ids, None)
        return LineFilter(ids, ProductTruth(PROPERTY_PREFIX + compared.key, self._truth_of_property(compared)))

    def _truth_of_property(self, compared: OfProperty) -> Array:
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

    def _window(self, scope: SalesScope) -> Window:
        first, last = days_of(scope.window, self._query.today)
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
