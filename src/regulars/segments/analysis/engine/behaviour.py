"""Conditions about sales: which customers they hold for, over runs of sales in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from regulars.catalog.model import AttributeType, spell
from regulars.segments.analysis.engine.attribute import UNREADABLE, YES, Read
from regulars.segments.analysis.engine.blobs import Array
from regulars.segments.analysis.engine.days import DAY_S, Zone, number_of
from regulars.segments.analysis.engine.memory import Held, Result
from regulars.segments.analysis.engine.sales import SalesRun
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

EXACT_MAX: Final = 2**53
# A day here is at most this far from the same day of UTC.
_SLACK_DAYS: Final = 2
_BEFORE_ALL, _AFTER_ALL = number_of(date.min), number_of(date.max)

Types = dict[str, tuple[AttributeType, tuple[str, ...]]]


@dataclass(slots=True)
class Bounds:
    """From and to, both included; None is open."""

    low: int | None = None
    high: int | None = None

    def hold(self, value: int) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def hold_all(self, values: Array) -> Array:
        held = np.ones(values.size, bool)
        if self.low is not None:
            held &= values >= self.low
        if self.high is not None:
            held &= values <= self.high
        return held


class Lines(NamedTuple):
    """Which products pass, by their codes; and those whose property its type cannot read."""

    passing: Array
    unreadable: Array


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
                bounds = Bounds(condition.at_least_cents, condition.at_most_cents)
                held = self._has_ticket(condition, lines, bounds)
            case Spend():
                bounds = _bounds(condition.at_least_cents, condition.at_most_cents, none=condition.none)
                held = self._sums_within(condition, lines, bounds)
            case Articles():
                low = None if condition.at_least is None else millionths(condition.at_least)
                high = None if condition.at_most is None else millionths(condition.at_most)
                held = self._sums_within(condition, lines, _bounds(low, high, none=condition.none))
            case _:
                held = self._holds_so_often(condition, lines)
        return held, self._unreadable(lines)

    def _holds_so_often(self, condition: Bought | Tickets | Returned, lines: Lines | None) -> Array:
        bounds = _bounds(condition.at_least, condition.at_most, none=condition.none)
        if bounds.low is None and bounds.high is None:
            bounds.low = 1
        window = self._window(condition)
        if bounds.high in {None, 0} and (bounds.low or 0) <= 1:
            if bounds.high == 0:
                empty = ~self._has(condition, lines, window)
                return empty if (bounds.low or 0) == 0 else np.zeros_like(empty)
            return self._has(condition, lines, window) if bounds.low == 1 else np.ones(self._held.size, bool)
        customers = [run.parts["customer"][chosen] for run, chosen in self._chosen(condition, lines, window)]
        return bounds.hold_all(np.bincount(_joined(customers), minlength=self._held.size))

    def _holds_on_day(self, condition: FirstPurchase | LastPurchase, lines: Lines | None) -> Array:
        """By what was bought in stretches of days: the last purchase lies in one if there is none after it."""
        when = condition.when
        bought = self._has(condition, lines, (_BEFORE_ALL, _AFTER_ALL))
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

    def _sums_within(self, condition: Spend | Articles, lines: Lines | None, bounds: Bounds) -> Array:
        window = self._window(condition)
        customers: list[Array] = []
        values: list[Array] = []
        largest = 0
        for run, chosen in self._chosen(condition, lines, window):
            if isinstance(condition, Spend) and lines is None:
                customer, value = run.parts["customer"][chosen], run.parts["amount"][chosen]
            else:
                customer, value = self._of_lines(run, chosen, lines, by_money=isinstance(condition, Spend))
            if value.size:
                customers.append(customer)
                values.append(value)
                largest = max(largest, abs(int(value.max())), abs(int(value.min())))
        return self._sum_within(_joined(customers), _joined(values), largest, bounds)

    def _sum_within(self, customers: Array, values: Array, largest: int, bounds: Bounds) -> Array:
        """Whose values sum within the bounds. Whoever has none has 0.

        Doubles hold every integer up to 2^53, so sums that cannot pass it are exact in them, and adding into an array
        by number takes a fifteenth of the time that grouping takes. Others are made in 128 bits.
        """
        if largest * values.size <= EXACT_MAX:
            return bounds.hold_all(np.bincount(customers, values, self._held.size))
        frame = pl.DataFrame({"c": customers, "s": values})
        sums = frame.group_by("c").agg(pl.col("s").cast(pl.Int128).sum())
        held = np.full(self._held.size, bounds.hold(0))
        held[sums["c"].to_numpy()] = _inside(sums["s"], bounds)
        return held

    def _of_lines(self, run: SalesRun, chosen: Array, lines: Lines | None, *, by_money: bool) -> tuple[Array, Array]:
        product = run.parts["product"]
        passing = product > 0 if lines is None else lines.passing[product]
        places = np.flatnonzero(passing)
        sale = run.line_sale()[places]
        if not chosen.all():
            among = chosen[sale]
            places, sale = places[among], sale[among]
        return run.parts["customer"][sale], run.parts["total" if by_money else "quantity"][places]

    def _has(self, condition: OfSales, lines: Lines | None, window: tuple[int, int]) -> Array:
        """Who has a sale that passes, of those that the condition speaks of.

        Who ever bought is asked beside whatever days a condition names, so it is kept by itself.
        """
        if window != (_BEFORE_ALL, _AFTER_ALL):
            return self._scattered(condition, lines, window)
        declared = None if condition.property is None else self._asked.properties.get(condition.property.key)
        stores = tuple(self._asked.stores.get(reference) for reference in condition.stores)
        asked = (isinstance(condition, Returned), condition.products, condition.property, declared, stores)
        key = ("ever", asked, self._asked.today, self._asked.zone, self._held.size, self._held.sales_as_of)
        if key not in self._held.results:
            self._held.results[key] = (self._scattered(condition, lines, window), None)
        self._held.results.move_to_end(key)
        return self._held.results[key][0].copy()

    def _scattered(self, condition: OfSales, lines: Lines | None, window: tuple[int, int]) -> Array:
        held = np.zeros(self._held.size, bool)
        for run, chosen in self._chosen(condition, lines, window):
            held[run.parts["customer"][chosen]] = True
        return held

    def _has_ticket(self, condition: TicketValue, lines: Lines | None, bounds: Bounds) -> Array:
        """Who has a purchase of such a value; by product, of such a value of its lines."""
        held = np.zeros(self._held.size, bool)
        for run, chosen in self._chosen(condition, lines, self._window(condition)):
            if lines is None:
                held[run.parts["customer"][chosen & bounds.hold_all(run.parts["amount"])]] = True
                continue
            places = np.flatnonzero(lines.passing[run.parts["product"]])
            frame = pl.DataFrame({"c": run.line_sale()[places], "s": run.parts["total"][places]})
            # A ticket has at most a thousand lines, of at most 2^53 each: their sum may pass 63 bits.
            sums = frame.group_by("c").agg(pl.col("s").cast(pl.Int128).sum())
            sales = sums["c"].to_numpy()[_inside(sums["s"], bounds)]
            held[run.parts["customer"][sales[chosen[sales]]]] = True
        return held

    def _chosen(
        self, condition: OfSales, lines: Lines | None, window: tuple[int, int]
    ) -> Iterator[tuple[SalesRun, Array]]:
        """The runs that have sales in the window, each with which of its sales pass."""
        kinds = self._kinds(condition)
        stores = self._stores(condition)
        for meta in self._held.runs("sales"):
            if not _overlaps(meta.first_s, meta.last_s, window):
                continue
            run = self._held.sales[meta.id]
            chosen = _is_one_of(run.parts["kind"], kinds)
            if stores is not None:
                chosen &= stores[run.parts["store"]]
            if window != (_BEFORE_ALL, _AFTER_ALL):
                days = run.days(self._zone, self._asked.zone)
                chosen &= (days >= window[0]) & (days <= window[1])
            if lines is not None and not isinstance(condition, Spend | Articles):
                with_line = np.zeros(chosen.size, bool)
                with_line[run.line_sale()[lines.passing[run.parts["product"]]]] = True
                chosen &= with_line
            yield run, chosen

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
        products = self._held.words.list_products()
        passing = np.ones(len(products), bool)
        unreadable = np.zeros(len(products), bool)
        if condition.products:
            wanted = set(condition.products)
            passing &= np.array([product.external_id in wanted for product in products])
        if condition.property is not None:
            truth = self._truth(condition.property)
            unreadable = passing & (truth == UNREADABLE)
            passing &= truth == YES
        passing[0] = unreadable[0] = False
        return Lines(passing, unreadable)

    def _truth(self, asked: OfProperty) -> Array:
        products = self._held.words.list_products()
        declared = self._asked.properties.get(asked.key)
        if declared is None or not is_askable(asked, self._asked.properties):
            return np.zeros(len(products), np.int8)
        told = [product.properties.get(asked.key) for product in products]
        spelled = ["" if value is None else spell(value) for value in told]
        distinct = list(dict.fromkeys(spelled))
        read = Read(declared[0], declared[1], self._asked.zone).truth(asked, distinct, self._asked.today)
        by_value = dict(zip(distinct, read.tolist(), strict=True))
        missing = int(_of_no_value(asked))
        return np.array(
            [missing if value is None else by_value[text] for value, text in zip(told, spelled, strict=True)], np.int8
        )

    def _unreadable(self, lines: Lines | None) -> Array | None:
        if lines is None or not lines.unreadable.any():
            return None
        held = np.zeros(self._held.size, bool)
        for meta in self._held.runs("sales"):
            run = self._held.sales[meta.id]
            held[run.parts["customer"][run.line_sale()[lines.unreadable[run.parts["product"]]]]] = True
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


def _inside(sums: pl.Series, bounds: Bounds) -> Array:
    inside = np.ones(sums.len(), bool)
    if bounds.low is not None:
        inside &= (sums >= bounds.low).to_numpy()
    if bounds.high is not None:
        inside &= (sums <= bounds.high).to_numpy()
    return inside


def _of_no_value(asked: OfProperty) -> bool:
    return asked.comparison == "is_not_set" or (asked.comparison in NEGATIVE and bool(asked.without_value))


def _bounds(low: int | None, high: int | None, *, none: bool) -> Bounds:
    return Bounds(0, 0) if none else Bounds(low, high)


def _overlaps(first_s: int | None, last_s: int | None, window: tuple[int, int]) -> bool:
    if first_s is None or last_s is None:
        return True
    return first_s // DAY_S - _SLACK_DAYS <= window[1] and last_s // DAY_S + _SLACK_DAYS >= window[0]


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
