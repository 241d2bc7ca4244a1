"""Which sales of a run a condition speaks of, and their lines. A window is mostly a stretch, and costs nothing."""

from datetime import date
from typing import Final, NamedTuple

import numpy as np

from regulars.segments.analysis.engine.attribute import UNREADABLE, YES
from regulars.segments.analysis.engine.blobs import Array
from regulars.segments.analysis.engine.days import Zone, number_of
from regulars.segments.analysis.engine.sales import SalesRun

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
