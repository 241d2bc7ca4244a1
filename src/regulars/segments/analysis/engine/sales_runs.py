"""Runs of sales in memory: each run has its own arrays, and all of them share dictionaries of stores and products."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from threading import Lock
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from regulars.catalog.model import spell
from regulars.segments.analysis.engine.calendar import Zone, number_of
from regulars.segments.analysis.engine.coded_values import UNREADABLE, YES, Values
from regulars.segments.analysis.engine.encoding import Array, Dictionary
from regulars.segments.columns.model import Run

# Of more products than this, lines are picked one by one, and not product by product.
SLICES_MAX: Final = 2_000
# What may be asked of products: their external ids, and a property, whose key follows.
IDS: Final = "ids"
PROPERTY: Final = "p:"


class _Product(msgspec.Struct):
    external_id: str | None = None
    properties: dict[str, Any] | None = None


_product = msgspec.json.Decoder(_Product)


class Words:
    """What the codes of all runs of an organization mean. Runs are read in threads, which take turns here.

    There may be millions of products, one for each serial number that a till sends along. So whoever counts never has
    them as a whole, only what is asked of them; whoever merges runs has those of some runs.
    """

    def __init__(self) -> None:
        self.stores = Dictionary()
        self.currencies = Dictionary()
        # No product is 0, so the codes of products begin at 1.
        self.products = Dictionary([b""])
        self._told: dict[str, Values] = {}
        self._turn = Lock()

    @property
    def nbytes(self) -> int:
        told = sum(column.nbytes for column in self._told.values())
        return self.stores.nbytes + self.currencies.nbytes + self.products.nbytes + told

    def told(self, part: str) -> Values:
        """What the products have of a part, and how its type reads it; the codes are with the runs."""
        return self._told.setdefault(part, Values(Dictionary(), np.zeros(0, np.int32)))

    def read(self, part: str, products: Sequence[bytes]) -> Array:
        """Of each product the code of what it has; NONE where it has nothing."""
        told = [_told(part, _product.decode(product)) for product in products]
        with self._turn:
            return np.fromiter(map(self.told(part).dictionary.code, told), np.int32, len(told))

    def forget(self, part: str) -> None:
        """Whoever calls it sees to it that no run has codes of it."""
        self._told.pop(part, None)

    def map(self, name: str, values: Sequence[Any]) -> Array:
        """From the places in a list of a run to codes here."""
        dictionary = {"store": self.stores, "kind": self.currencies, "product": self.products}[name]
        with self._turn:
            return dictionary.map(values)


def is_told(part: str) -> bool:
    """Whether it is something that a product has."""
    return part == IDS or part.startswith(PROPERTY)


def _told(part: str, product: _Product) -> str | None:
    if part == IDS:
        return product.external_id
    value = (product.properties or {}).get(part.removeprefix(PROPERTY))
    return None if value is None else spell(value)


@dataclass(slots=True)
class SalesRun:
    """Those arrays of a run that were asked for so far, in the codes of the organization.

    Lines lie product by product: `starts` has where the lines of each begin, what is asked of products has a code for
    each, and `sale` the place of the sale of each line. Lines without a product are nowhere: no condition asks for
    them.
    """

    run: Run
    parts: dict[str, Array] = field(default_factory=dict)
    # Whether the days ascend, so that a window is a stretch of the run.
    is_in_order: bool = False

    @property
    def size(self) -> int:
        return self.parts["customer"].size

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts.values())

    def days(self, zone: Zone) -> Array:
        """The local days of the sales; they are all that is asked of the times, which go."""
        key = f"day:{zone.name}"
        if key not in self.parts:
            days = zone.days(self.parts["at_s"])
            for other in [other for other in list(self.parts) if other.startswith("day:")]:
                del self.parts[other]
            self.is_in_order = bool((days[1:] >= days[:-1]).all())
            self.parts[key] = days
            del self.parts["at_s"]
        return self.parts[key]

    def pick(self, passing: Array | None, *names: str) -> list[Array]:
        """Of the lines whose product passes, by its place in the run, or of all, these arrays."""
        parts = [self.parts[name] for name in names]
        if passing is None:
            return parts
        starts, groups = self.parts["starts"], np.flatnonzero(passing)
        if groups.size == passing.size:
            return parts
        if groups.size > SLICES_MAX:
            lines = np.repeat(passing, np.diff(starts))
            return [part[lines] for part in parts]
        stretches = list(zip(starts[groups].tolist(), starts[groups + 1].tolist(), strict=True))
        return [
            np.concatenate([part[first:last] for first, last in stretches]) if stretches else part[:0] for part in parts
        ]

    def measures(self, name: str, lines: Array) -> Array:
        """What these lines measure: totals as they are; quantities, kept by what divides all of them, in millionths."""
        return lines.astype(np.int64) * self.parts["unit"][0] if name == "quantity" else lines


# The first and the last day there are.
EVER: Final = (number_of(date.min), number_of(date.max))


class Told(NamedTuple):
    """For what is told of a product, by its code, whether it is as asked; the place at the end is that of nothing."""

    part: str
    truth: Array


class Lines(NamedTuple):
    """Which lines a condition asks for, by their products: one of these ids, such a property, or both."""

    ids: Told | None
    property: Told | None
    takes_unreadable: bool = False

    def passing(self, run: SalesRun) -> Array:
        """Of the products of a run, those that pass."""
        return self._of(run, YES, UNREADABLE) if self.takes_unreadable else self._of(run, YES)

    def unreadable(self, run: SalesRun) -> Array:
        """Those whose property its type cannot read."""
        return self._of(run, UNREADABLE)

    def with_unreadable(self) -> "Lines":
        """The same, and those whose property its type cannot read pass too."""
        return self._replace(takes_unreadable=True)

    def _of(self, run: SalesRun, *wanted: np.int8) -> Array:
        products = np.ones(run.parts["starts"].size - 1, bool)
        if self.ids is not None:
            products &= (self.ids.truth == YES)[run.parts[self.ids.part]]
        if self.property is not None:
            products &= np.isin(self.property.truth, wanted)[run.parts[self.property.part]]
        return products


class Chosen(NamedTuple):
    """Sales of a run, from the first to before the last; or of these only some."""

    run: SalesRun
    first: int
    last: int
    some: Array | None = None

    def all_of(self, part: str) -> Array:
        return self.run.parts[part][self.first : self.last]

    def of(self, part: str) -> Array:
        return self.all_of(part) if self.some is None else self.all_of(part)[self.some]

    def where(self, some: Array) -> "Chosen":
        return self._replace(some=some if self.some is None else self.some & some)

    def has(self, sales: Array) -> Array:
        """Of sales by their places, which are among these."""
        among: Array = (sales >= self.first) & (sales < self.last)
        if self.some is not None:
            among[among] = self.some[sales[among] - self.first]
        return among

    @property
    def is_whole(self) -> bool:
        return self.some is None and self.last - self.first == self.run.size


def in_window(run: SalesRun, window: tuple[int, int], zone: Zone) -> Chosen:
    if window == EVER:
        return Chosen(run, 0, run.size)
    days = run.days(zone)
    if run.is_in_order:
        first, last = np.int32(window[0]), np.int32(window[1])
        return Chosen(run, int(np.searchsorted(days, first)), int(np.searchsorted(days, last, "right")))
    return Chosen(run, 0, run.size, (days >= window[0]) & (days <= window[1]))


def of_lines(chosen: Chosen, lines: Lines | None, part: str) -> tuple[Array, Array]:
    run = chosen.run
    sale, measured = run.pick(None if lines is None else lines.passing(run), "sale", part)
    if not chosen.is_whole:
        among = chosen.has(sale)
        sale, measured = sale[among], measured[among]
    return run.parts["customer"][sale], run.measures(part, measured)
