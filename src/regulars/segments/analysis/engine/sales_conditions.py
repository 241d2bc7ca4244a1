"""Conditions about sales: which customers they hold for, over runs of sales in memory."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from regulars.catalog.model import AttributeType
from regulars.conditions.check import is_askable
from regulars.conditions.comparisons import days_of, holds_of_no_value, holds_on, span_of_when
from regulars.conditions.customers import millionths
from regulars.conditions.tree import (
    Bought,
    FirstPurchase,
    LastPurchase,
    OfProperty,
    OfSales,
    OfTimes,
    Returned,
    Spend,
    TicketValue,
    is_net_articles,
)
from regulars.sales.model import Currency
from regulars.segments.analysis.engine.cache import Held, Result
from regulars.segments.analysis.engine.calendar import DAY_S, Zone, number_of
from regulars.segments.analysis.engine.coded_values import NO, UNREADABLE, YES
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import Wide, are_within, sum_by_place
from regulars.segments.analysis.engine.sales_runs import EVER, IDS, PROPERTY, Chosen, Lines, Told, in_window, of_lines
from regulars.segments.analysis.protocol import Asked

# A day here is at most this far from the same day of UTC.
_SLACK_DAYS: Final = 2
_BEFORE_ALL, _AFTER_ALL = EVER

Types = dict[str, tuple[AttributeType, tuple[str, ...]]]


class Behaviour:
    """One question's sales; `zone` is the organization's."""

    def __init__(self, held: Held, asked: Asked, zone: Zone) -> None:
        self._held = held
        self._asked = asked
        self._zone = zone

    def look(self, condition: OfSales) -> Result:
        """A line whose property cannot be read is tried both ways: where that changes the answer, it is not known."""
        if condition.property is not None and not is_askable(condition.property, self._asked.properties):
            return Result(np.zeros(self._held.size, bool), np.ones(self._held.size, bool))
        lines = self._lines(condition)
        held = self._holds(condition, lines)
        unreadable = self._unreadable(lines)
        if lines is None or unreadable is None:
            return Result(held)
        otherwise = self._holds(condition, lines.with_unreadable())
        return Result(held & otherwise, held ^ otherwise, unreadable)

    def _holds(self, condition: OfSales, lines: Lines | None) -> Array:
        match condition:
            case FirstPurchase() | LastPurchase():
                return self._holds_on_day(condition, lines)
            case TicketValue():
                return self._has_ticket(condition, lines)
            case Spend():
                return self._sums_within(condition, lines, condition.at_least_cents, condition.at_most_cents)
            case Bought(count="articles"):
                bounds = (condition.at_least, condition.at_most)
                return self._sums_within(condition, lines, *(None if it is None else millionths(it) for it in bounds))
            case Bought() | Returned():
                return self._holds_so_often(condition, lines)

    def _holds_so_often(self, condition: OfTimes, lines: Lines | None) -> Array:
        low, high = (None if it is None else int(it) for it in (condition.at_least, condition.at_most))
        if condition.none:
            low, high = None, 0
        elif low is None and high is None:
            low = 1
        window = self._window(condition)
        if high in {None, 0} and (low or 0) <= 1:
            if high == 0:
                empty = ~self._has(condition, lines, window)
                return empty if (low or 0) == 0 else np.zeros_like(empty)
            return self._has(condition, lines, window) if low == 1 else np.ones(self._held.size, bool)
        kinds = tuple(np.flatnonzero(self._kinds(condition)).tolist())
        key = ("times", kinds, window, *self._depends(condition, lines))
        return are_within((self._kept(key, lambda: self._times(condition, lines)), None), low, high)

    def _times(self, condition: OfTimes, lines: Lines | None) -> Array:
        times = np.zeros(self._held.size, np.int64)
        for chosen in self._chosen(condition, lines, self._window(condition)):
            times += np.bincount(chosen.of("customer"), minlength=self._held.size)
        return times

    def _holds_on_day(self, condition: FirstPurchase | LastPurchase, lines: Lines | None) -> Array:
        """By what was bought in stretches of days: the last purchase lies in one if there is none after it."""
        when = condition.when
        bought = self._has(condition, lines, EVER)
        first, last, is_within = span_of_when(when, self._asked.today)
        low, high = number_of(first), number_of(last)
        inside = self._has(condition, lines, (low, high))
        if isinstance(condition, LastPurchase):
            inside &= ~self._has(condition, lines, (high + 1, _AFTER_ALL))
        else:
            inside &= ~self._has(condition, lines, (_BEFORE_ALL, low - 1))
        held = inside if is_within else bought & ~inside
        return held | ~bought if holds_on(when, None, self._asked.today) else held

    def last_purchases(self) -> Array:
        """The day of each customer's last purchase; whoever has none is before all."""
        condition = Bought()

        def compute() -> Array:
            last = np.full(self._held.size, _BEFORE_ALL - 1, np.int64)
            for chosen in self._chosen(condition, None, EVER):
                days = chosen.run.days(self._zone).astype(np.int64)
                np.maximum.at(last, chosen.of("customer"), days if chosen.some is None else days[chosen.some])
            return last

        return self._kept(("last", *self._depends(condition, None)), compute)

    def spends(self, currency: Currency) -> Wide:
        """What each customer ever spent net."""
        sums = self._sums(Spend(currency=currency), None)
        return sums[0], sums[1]

    def _sums_within(self, condition: Spend | Bought, lines: Lines | None, low: int | None, high: int | None) -> Array:
        """Whose values sum within the bounds. Whoever has none has 0. The sums are kept: whoever moves a bound asks for
        the same again."""
        sums = self._sums(condition, lines)
        return are_within(sums[:2], None, 0) if condition.none else are_within(sums[:2], low, high)

    def _sums(self, condition: Spend | Bought, lines: Lines | None) -> Result:
        kinds = tuple(np.flatnonzero(self._kinds(condition)).tolist())
        key = ("sums", isinstance(condition, Spend), kinds, self._window(condition), *self._depends(condition, lines))
        return self._held.results.find(key) or self._held.results.keep(
            key, Result(*sum_by_place(list(self._values(condition, lines)), self._held.size))
        )

    def _values(self, condition: Spend | Bought, lines: Lines | None) -> Iterator[tuple[Array, Array]]:
        """What there is to sum: of each run the customers, and a value for each."""
        for chosen in self._chosen(condition, lines, self._window(condition)):
            if isinstance(condition, Spend) and lines is None:
                yield chosen.of("customer"), chosen.of("amount")
            else:
                yield of_lines(chosen, lines, "total" if isinstance(condition, Spend) else "quantity")

    def _has(self, condition: OfSales, lines: Lines | None, window: tuple[int, int]) -> Array:
        """Who has a sale that passes, of those that the condition speaks of.

        Who ever bought is asked beside whatever days a condition names, so it is kept by itself.
        """
        if window != EVER:
            return self._scattered(condition, lines, window)
        key = ("ever", isinstance(condition, Returned), *self._depends(condition, lines))
        return self._kept(key, lambda: self._scattered(condition, lines, window)).copy()

    def _depends(self, condition: OfSales, lines: Lines | None) -> tuple[object, ...]:
        """Whatever an answer about these sales depends on, besides their days and kinds."""
        declared = None if condition.property is None else self._asked.properties.get(condition.property.key)
        stores = tuple(self._asked.stores.get(reference) for reference in condition.stores)
        about = (condition.products, condition.property, declared, stores, self._asked.today, self._asked.zone)
        return *about, lines is not None and lines.takes_unreadable, self._held.size, self._held.sales_as_of

    def _kept(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        known = self._held.results.find(key)
        return (known or self._held.results.keep(key, Result(compute()))).held

    def _scattered(self, condition: OfSales, lines: Lines | None, window: tuple[int, int]) -> Array:
        held = np.zeros(self._held.size, bool)
        for chosen in self._chosen(condition, lines, window):
            held[chosen.of("customer")] = True
        return held

    def _has_ticket(self, condition: TicketValue, lines: Lines | None) -> Array:
        """Who has a purchase of such a value; by product, of such a value of its lines."""
        held = np.zeros(self._held.size, bool)
        low, high = condition.at_least_cents, condition.at_most_cents
        for chosen in self._chosen(condition, lines, self._window(condition)):
            if lines is None:
                held[chosen.of("customer")[are_within((chosen.of("amount"), None), low, high)]] = True
                continue
            run = chosen.run
            sale, total = run.pick(lines.passing(run), "sale", "total")
            has_line = np.zeros(run.size, bool)
            has_line[sale] = True
            sales = np.flatnonzero(has_line & are_within(sum_by_place([(sale, total)], run.size), low, high))
            held[run.parts["customer"][sales[chosen.has(sales)]]] = True
        return held

    def _chosen(self, condition: OfSales, lines: Lines | None, window: tuple[int, int]) -> Iterator[Chosen]:
        """The runs that have sales in the window, each with which of its sales pass."""
        kinds = self._kinds(condition)
        stores = self._stores(condition)
        for meta in self._held.runs("sales"):
            if not _overlaps(meta.first_s, meta.last_s, window):
                continue
            run = self._held.sales[meta.id]
            chosen = in_window(run, window, self._zone)
            if chosen.first >= chosen.last:
                continue
            kind = chosen.all_of("kind")
            if not kinds[kind.min() : kind.max() + 1].all():
                chosen = chosen.where(_is_one_of(kind, kinds))
            if stores is not None:
                chosen = chosen.where(stores[chosen.all_of("store")])
            if lines is not None and not (is_net_articles(condition) or isinstance(condition, Spend | TicketValue)):
                with_line = np.zeros(run.size, bool)
                with_line[run.pick(lines.passing(run), "sale")[0]] = True
                chosen = chosen.where(with_line[chosen.first : chosen.last])
            yield chosen

    def _kinds(self, condition: OfSales) -> Array:
        """By kind of sale: purchases, returns or both, in one currency or in any."""
        currencies = self._held.words.currencies
        kinds = np.zeros(2 * len(currencies) + 2, bool)
        is_purchase = not isinstance(condition, Returned)
        is_return = isinstance(condition, Returned | Spend) or is_net_articles(condition)
        for code, currency in enumerate(currencies.values):
            if isinstance(condition, Spend | TicketValue) and currency != condition.currency:
                continue
            kinds[2 * code], kinds[2 * code + 1] = is_purchase, is_return
        return kinds

    def _stores(self, condition: OfSales) -> Array | None:
        if not condition.stores:
            return None
        stores = np.zeros(len(self._held.words.stores) + 1, bool)
        for reference in condition.stores:
            identifier = self._asked.stores.get(reference)
            code = -1 if identifier is None else self._held.words.stores.find(identifier.bytes)
            if code >= 0:
                stores[code] = True
        return stores

    def _lines(self, condition: OfSales) -> Lines | None:
        """Which products pass, or None where every line does."""
        if not condition.products and condition.property is None:
            return None
        ids = Told(IDS, self._are_among(condition.products)) if condition.products else None
        asked = condition.property
        return Lines(ids, None if asked is None else Told(PROPERTY + asked.key, self._truth(asked)))

    def _are_among(self, products: Sequence[str]) -> Array:
        dictionary = self._held.words.told(IDS).dictionary
        among = np.full(len(dictionary) + 1, NO)
        among[[code for product in products if (code := dictionary.find(product)) >= 0]] = YES
        return among

    def _truth(self, asked: OfProperty) -> Array:
        declared = self._asked.properties.get(asked.key)
        told = self._held.words.told(PROPERTY + asked.key)
        if declared is None:
            raise AssertionError(f"{asked.key} is not declared")
        read = told.read_as(declared[0], declared[1], self._asked.zone)
        truth = read.truth(asked, told.dictionary.values, self._asked.today, self._held.reading)
        return np.append(truth, YES if holds_of_no_value(asked) else NO)

    def _unreadable(self, lines: Lines | None) -> Array | None:
        if lines is None or lines.property is None or not (lines.property.truth == UNREADABLE).any():
            return None
        held = np.zeros(self._held.size, bool)
        for meta in self._held.runs("sales"):
            run = self._held.sales[meta.id]
            held[run.parts["customer"][run.pick(lines.unreadable(run), "sale")[0]]] = True
        return held

    def _window(self, condition: OfTimes | Spend | TicketValue) -> tuple[int, int]:
        first, last = days_of(condition.window, self._asked.today)
        return number_of(first), number_of(last)


def _is_one_of(kinds: Array, wanted: Array) -> Array:
    """By comparing: there are few kinds, and looking each up in a table takes twenty times as long."""
    chosen = np.zeros(kinds.size, bool)
    for kind in np.flatnonzero(wanted).tolist():
        chosen |= kinds == kind
    return chosen


def _overlaps(first_s: int | None, last_s: int | None, window: tuple[int, int]) -> bool:
    if first_s is None or last_s is None:
        return True
    return first_s // DAY_S - _SLACK_DAYS <= window[1] and last_s // DAY_S + _SLACK_DAYS >= window[0]
