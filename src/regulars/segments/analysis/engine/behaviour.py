"""Conditions about sales: which customers they hold for, over runs of sales in memory."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Final

import numpy as np

from regulars.catalog.model import AttributeType
from regulars.segments.analysis.engine.attribute import NO, UNREADABLE, YES
from regulars.segments.analysis.engine.blobs import Array
from regulars.segments.analysis.engine.chosen import EVER, Chosen, Lines, Told, in_window, of_lines
from regulars.segments.analysis.engine.days import DAY_S, Zone, number_of
from regulars.segments.analysis.engine.memory import Held, Result
from regulars.segments.analysis.engine.numbers import are_within, sum_by_place
from regulars.segments.analysis.engine.sales import IDS, PROPERTY
from regulars.segments.analysis.model import Asked
from regulars.segments.check import is_askable
from regulars.segments.definition import (
    Articles,
    Bought,
    FirstPurchase,
    LastPurchase,
    OfProperty,
    OfSales,
    Returned,
    Spend,
    Tickets,
    TicketValue,
    When,
)
from regulars.segments.explain.millionths import millionths
from regulars.segments.values import NEGATIVE, days_of, holds_on

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

    def holds(self, condition: OfSales) -> Result:
        """For whom it holds, and who has a product whose property cannot be read."""
        lines = self._lines(condition)
        match condition:
            case FirstPurchase() | LastPurchase():
                held = self._holds_on_day(condition, lines)
            case TicketValue():
                held = self._has_ticket(condition, lines)
            case Spend():
                held = self._sums_within(condition, lines, condition.at_least_cents, condition.at_most_cents)
            case Articles():
                bounds = (condition.at_least, condition.at_most)
                held = self._sums_within(condition, lines, *(None if it is None else millionths(it) for it in bounds))
            case _:
                held = self._holds_so_often(condition, lines)
        return held, self._unreadable(lines)

    def _holds_so_often(self, condition: Bought | Tickets | Returned, lines: Lines | None) -> Array:
        low, high = (0, 0) if condition.none else (condition.at_least, condition.at_most)
        if low is None and high is None:
            low = 1
        window = self._window(condition)
        if high in {None, 0} and (low or 0) <= 1:
            if high == 0:
                empty = ~self._has(condition, lines, window)
                return empty if (low or 0) == 0 else np.zeros_like(empty)
            return self._has(condition, lines, window) if low == 1 else np.ones(self._held.size, bool)
        kinds = tuple(np.flatnonzero(self._kinds(condition)).tolist())
        times = self._kept(("times", kinds, window, *self._depends(condition)), lambda: self._times(condition, lines))
        return are_within((times, None), low, high)

    def _times(self, condition: Bought | Tickets | Returned, lines: Lines | None) -> Array:
        times = np.zeros(self._held.size, np.int64)
        for chosen in self._chosen(condition, lines, self._window(condition)):
            times += np.bincount(chosen.of("customer"), minlength=self._held.size)
        return times

    def _holds_on_day(self, condition: FirstPurchase | LastPurchase, lines: Lines | None) -> Array:
        """By what was bought in stretches of days: the last purchase lies in one if there is none after it."""
        when = condition.when
        bought = self._has(condition, lines, EVER)
        low, high = self._stretch(when)
        inside = self._has(condition, lines, (low, high))
        if isinstance(condition, LastPurchase):
            inside &= ~self._has(condition, lines, (high + 1, _AFTER_ALL))
        else:
            inside &= ~self._has(condition, lines, (_BEFORE_ALL, low - 1))
        held = bought & ~inside if when.comparison == "not_in_last_days" else inside
        return held | ~bought if holds_on(when, None, self._asked.today) else held

    def _stretch(self, when: When) -> tuple[int, int]:
        """The days that a comparison speaks of; of a negative one those that it excludes."""
        today = number_of(self._asked.today)
        match when.comparison:
            case "before":
                return _BEFORE_ALL, number_of(when.date or date.min) - 1
            case "after":
                return number_of(when.date or date.max) + 1, _AFTER_ALL
            case "between":
                return number_of(when.from_ or date.max), number_of(when.to or date.min)
            case _:
                return today - (when.days or 0), today

    def _sums_within(
        self, condition: Spend | Articles, lines: Lines | None, low: int | None, high: int | None
    ) -> Array:
        """Whose values sum within the bounds. Whoever has none has 0. The sums are kept: whoever moves a bound asks for
        the same again."""
        kinds = tuple(np.flatnonzero(self._kinds(condition)).tolist())
        key = ("sums", isinstance(condition, Spend), kinds, self._window(condition), *self._depends(condition))
        sums = self._held.results.find(key) or self._held.results.keep(
            key, sum_by_place(list(self._values(condition, lines)), self._held.size)
        )
        return are_within(sums, 0, 0) if condition.none else are_within(sums, low, high)

    def _values(self, condition: Spend | Articles, lines: Lines | None) -> Iterator[tuple[Array, Array]]:
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
        key = ("ever", isinstance(condition, Returned), *self._depends(condition))
        return self._kept(key, lambda: self._scattered(condition, lines, window)).copy()

    def _depends(self, condition: OfSales) -> tuple[object, ...]:
        """Whatever an answer about these sales depends on, besides their days and kinds."""
        declared = None if condition.property is None else self._asked.properties.get(condition.property.key)
        stores = tuple(self._asked.stores.get(reference) for reference in condition.stores)
        about = (condition.products, condition.property, declared, stores, self._asked.today, self._asked.zone)
        return *about, self._held.size, self._held.sales_as_of

    def _kept(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        known = self._held.results.find(key)
        return (known or self._held.results.keep(key, (compute(), None)))[0]

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
            if lines is not None and not isinstance(condition, Spend | Articles | TicketValue):
                with_line = np.zeros(run.size, bool)
                with_line[run.pick(lines.passing(run), "sale")[0]] = True
                chosen = chosen.where(with_line[chosen.first : chosen.last])
            yield chosen

    def _kinds(self, condition: OfSales) -> Array:
        """By kind of sale: purchases, returns or both, in one currency or in any."""
        currencies = self._held.words.currencies
        kinds = np.zeros(2 * len(currencies) + 2, bool)
        is_purchase, is_return = not isinstance(condition, Returned), isinstance(condition, Returned | Spend | Articles)
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
        if declared is None or not is_askable(asked, self._asked.properties):
            return np.full(len(told.dictionary) + 1, NO)
        read = told.read_as(declared[0], declared[1], self._asked.zone)
        truth = read.truth(asked, told.dictionary.values, self._asked.today, self._held.reading)
        return np.append(truth, YES if _of_no_value(asked) else NO)

    def _unreadable(self, lines: Lines | None) -> Array | None:
        if lines is None or lines.property is None or not (lines.property.truth == UNREADABLE).any():
            return None
        held = np.zeros(self._held.size, bool)
        for meta in self._held.runs("sales"):
            run = self._held.sales[meta.id]
            held[run.parts["customer"][run.pick(lines.unreadable(run), "sale")[0]]] = True
        return held

    def _window(self, condition: Bought | Tickets | Returned | Spend | Articles | TicketValue) -> tuple[int, int]:
        first, last = days_of(condition.window, self._asked.today)
        return number_of(first), number_of(last)


def _is_one_of(kinds: Array, wanted: Array) -> Array:
    """By comparing: there are few kinds, and looking each up in a table takes twenty times as long."""
    chosen = np.zeros(kinds.size, bool)
    for kind in np.flatnonzero(wanted).tolist():
        chosen |= kinds == kind
    return chosen


def _of_no_value(asked: OfProperty) -> bool:
    return asked.comparison == "is_not_set" or (asked.comparison in NEGATIVE and bool(asked.without_value))


def _overlaps(first_s: int | None, last_s: int | None, window: tuple[int, int]) -> bool:
    if first_s is None or last_s is None:
        return True
    return first_s // DAY_S - _SLACK_DAYS <= window[1] and last_s // DAY_S + _SLACK_DAYS >= window[0]
