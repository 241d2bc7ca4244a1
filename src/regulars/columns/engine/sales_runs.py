"""Runs of sales in memory, and selections of their sales and lines. A run is an immutable stored chunk of sales; its
arrays are called parts, and all runs share dictionaries of stores, currencies and products."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from threading import Lock
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from regulars.catalog.model import spell
from regulars.columns.engine.calendar import Zone, number_of
from regulars.columns.engine.coded_values import UNREADABLE, YES, CodedColumn
from regulars.columns.engine.encoding import Array, Dictionary
from regulars.columns.model import Run

# With more matching products, lines are selected by a mask instead of one slice per product.
SLICES_MAX: Final = 2_000
# Names of the product parts: external ids, names, and properties (this prefix and the key of the property).
PRODUCT_IDS: Final = "ids"
PRODUCT_NAMES: Final = "names"
PROPERTY_PREFIX: Final = "p:"
# The prefix of cached parts with purchase days; the name of the time zone follows.
BOUGHT: Final = "bought:"
# Parts whose unit is a millionth; they are stored divided by the greatest common divisor of their values.
SCALED: Final = ("units", "quantity", "line_units", "other_units")


class _Product(msgspec.Struct):
    external_id: str | None = None
    name: str | None = None
    properties: dict[str, Any] | None = None


_product = msgspec.json.Decoder(_Product)


class Dictionaries:
    """The dictionaries of all runs of an organization. Threads that decode runs share them under a lock.

    An organization may have millions of products, for example one per serial number. So a query loads only the parts of
    products that it needs; whole products are loaded only to merge runs.
    """

    def __init__(self) -> None:
        self.stores = Dictionary()
        self.currencies = Dictionary()
        # Code 0 means no product, so the codes of products begin at 1.
        self.products = Dictionary([b""])
        self._product_values: dict[str, CodedColumn] = {}
        self._lock = Lock()
        # Held while whole products are decoded, which takes several times the memory of the values that remain, so that
        # only one run needs it at a time. Several threads would not decode them faster.
        self.products_lock = Lock()

    @property
    def nbytes(self) -> int:
        product_values = sum(column.nbytes for column in self._product_values.values())
        return self.stores.nbytes + self.currencies.nbytes + self.products.nbytes + product_values

    def product_values(self, part: str) -> CodedColumn:
        """The distinct values of a product part, with their parsed forms; the runs contain their codes."""
        return self._product_values.setdefault(part, CodedColumn(Dictionary(), np.zeros(0, np.int32)))

    def encode_products(self, part: str, products: Sequence[bytes]) -> Array:
        """The code of each product's value; NONE if the product has no value."""
        code = self.product_values(part).dictionary.code
        with self._lock:
            codes = (code(_value_of(part, _product.decode(product))) for product in products)
            return np.fromiter(codes, np.int32, len(products))

    def forget(self, part: str) -> int:
        """Drop the values of a part, whose codes the caller removes from all runs; return their size in bytes."""
        values = self._product_values.pop(part, None)
        return 0 if values is None else values.nbytes

    def map(self, name: str, values: Sequence[Any]) -> Array:
        """The organization-wide codes of the values of a run, by their index in the list of the run."""
        dictionary = {"store": self.stores, "kind": self.currencies, "product": self.products}[name]
        with self._lock:
            return dictionary.map(values)


def scale_of(part: str) -> str:
    """The name of the array that has the divisor of a scaled part."""
    return f"scale:{part}"


def is_product_part(part: str) -> bool:
    """Whether the part is a value of products."""
    return part in {PRODUCT_IDS, PRODUCT_NAMES} or part.startswith(PROPERTY_PREFIX)


def _value_of(part: str, product: _Product) -> str | None:
    if part in {PRODUCT_IDS, PRODUCT_NAMES}:
        return product.external_id if part == PRODUCT_IDS else product.name
    value = (product.properties or {}).get(part.removeprefix(PROPERTY_PREFIX))
    return None if value is None else spell(value)


@dataclass(slots=True)
class SalesRun:
    """The arrays of a run that were loaded so far, with the organization-wide codes.

    Lines are grouped by product: `starts` has the first line of each product, a product part has one code
    per product, and `sale` has the index of the sale of each line. Lines without a product, which no condition
    needs, are in the parts `other_sale`, `other_units` and `other_total`.
    """

    # The run without its data.
    meta: Run
    parts: dict[str, Array] = field(default_factory=dict)
    # Whether the days ascend, so that a window is a slice of the run.
    is_in_order: bool = False

    @property
    def size(self) -> int:
        return self.parts["customer"].size

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts.values())

    def days(self, zone: Zone) -> Array:
        """The local days of the sales, which replace the exact times in memory, since conditions only use days."""
        key = f"day:{zone.name}"
        if key not in self.parts:
            days = zone.days(self.parts["at_s"])
            for other in [other for other in list(self.parts) if other.startswith("day:")]:
                del self.parts[other]
            self.is_in_order = bool((days[1:] >= days[:-1]).all())
            self.parts[key] = days
            del self.parts["at_s"]
        return self.parts[key]

    def pick_lines(self, products: Array | None, *names: str) -> list[Array]:
        """The named arrays, reduced to the lines whose product is in the mask `products`; None selects all lines."""
        parts = [self.parts[name] for name in names]
        if products is None:
            return parts
        starts, groups = self.parts["starts"], np.flatnonzero(products)
        if groups.size == products.size:
            return parts
        if groups.size > SLICES_MAX:
            lines = np.repeat(products, np.diff(starts))
            return [part[lines] for part in parts]
        slices = list(zip(starts[groups].tolist(), starts[groups + 1].tolist(), strict=True))
        return [np.concatenate([part[first:last] for first, last in slices]) if slices else part[:0] for part in parts]

    def to_cents_or_millionths(self, name: str, values: Array) -> Array:
        """Convert stored values of a part: cents are unchanged, quantities and units are multiplied to millionths."""
        return values.astype(np.int64) * self.factor_of(name) if name in SCALED else values

    def factor_of(self, name: str) -> int:
        """The factor by which the stored values of a part are multiplied."""
        return int(self.parts[scale_of(name)][0]) if name in SCALED else 1


# A window that contains all days.
ALL_DAYS: Final = (number_of(date.min), number_of(date.max))


class ProductTruth(NamedTuple):
    """Whether each value of a product part matches, by its code; the last element is for products without a value."""

    part: str
    truth: Array


class LineFilter(NamedTuple):
    """Selects the lines that match a condition, by the id of their product, a property of the product, or both."""

    ids: ProductTruth | None
    property: ProductTruth | None
    includes_unreadable: bool = False

    def match_products(self, run: SalesRun) -> Array:
        """A mask of the products of a run that match."""
        return self._mask_products(run, YES, UNREADABLE) if self.includes_unreadable else self._mask_products(run, YES)

    def unreadable(self, run: SalesRun) -> Array:
        """A mask of the products whose property cannot be parsed as its type."""
        return self._mask_products(run, UNREADABLE)

    def with_unreadable(self) -> "LineFilter":
        """A filter for which products with an unreadable property match too."""
        return self._replace(includes_unreadable=True)

    def _mask_products(self, run: SalesRun, *results: np.int8) -> Array:
        products = np.ones(run.parts["starts"].size - 1, bool)
        if self.ids is not None:
            products &= (self.ids.truth == YES)[run.parts[self.ids.part]]
        if self.property is not None:
            products &= np.isin(self.property.truth, results)[run.parts[self.property.part]]
        return products


class SalesSelection(NamedTuple):
    """A slice of the sales of a run, from `first` to before `last`, or some sales of the slice."""

    run: SalesRun
    first: int
    last: int
    # A mask or the indexes of the selected sales of the slice; None selects the whole slice.
    row_filter: Array | None = None

    def all_of(self, part: str) -> Array:
        """The values of the whole slice."""
        return self.run.parts[part][self.first : self.last]

    def of(self, part: str) -> Array:
        """The values of the selected sales."""
        return self.all_of(part) if self.row_filter is None else self.all_of(part)[self.row_filter]

    def days(self, zone: Zone) -> Array:
        days = self.run.days(zone)[self.first : self.last]
        return days if self.row_filter is None else days[self.row_filter]

    def where(self, mask: Array) -> "SalesSelection":
        return self._replace(row_filter=mask if self.row_filter is None else self.row_filter & mask)

    def has(self, sales: Array) -> Array:
        """Which of these sale indexes are in the selection."""
        is_selected: Array = (sales >= self.first) & (sales < self.last)
        if self.row_filter is not None:
            is_selected[is_selected] = self.row_filter[sales[is_selected] - self.first]
        return is_selected

    @property
    def is_whole(self) -> bool:
        return self.row_filter is None and self.last - self.first == self.run.size


def select_window(run: SalesRun, window: tuple[int, int], zone: Zone) -> SalesSelection:
    """Select the sales from the first to the last day of the window."""
    if window == ALL_DAYS:
        return SalesSelection(run, 0, run.size)
    days = run.days(zone)
    if run.is_in_order:
        first, last = np.int32(window[0]), np.int32(window[1])
        return SalesSelection(run, int(np.searchsorted(days, first)), int(np.searchsorted(days, last, "right")))
    return SalesSelection(run, 0, run.size, (days >= window[0]) & (days <= window[1]))


def select_lines(selection: SalesSelection, line_filter: LineFilter | None, part: str) -> tuple[Array, Array]:
    """The customer and the value of each matching line of the selected sales."""
    run = selection.run
    sale, values = run.pick_lines(None if line_filter is None else line_filter.match_products(run), "sale", part)
    if not selection.is_whole:
        is_selected = selection.has(sale)
        sale, values = sale[is_selected], values[is_selected]
    return run.parts["customer"][sale], run.to_cents_or_millionths(part, values)
