"""Lines of sales by what a question groups them by: the product, a property of it, or the store."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from regulars.kit.ids import STORE
from regulars.sales.model import Currency
from regulars.segments.analysis.engine.answers.tickets import RefusedQuestion, Tickets, Window
from regulars.segments.analysis.engine.encoding import NONE, Array, Dictionary
from regulars.segments.analysis.engine.sales_runs import IDS, PROPERTY, SalesRun, SalesSelection
from regulars.segments.analysis.questions import ProductGroup, ProductKey

# Groups of lines: without a product, of products without the value, and then one for each value.
NO_PRODUCT, UNSET, FIRST_VALUE = range(3)
PRODUCT_LINES: Final = ("sale", "line_units", "total")
OTHER_LINES: Final = ("other_sale", "other_units", "other_total")


class Lines(NamedTuple):
    """Some lines of a run: their indexes, and the group and the sale of each."""

    run: SalesRun
    places: Array
    group: Array
    sale: Array
    # The names of the arrays of units and totals.
    units: str
    total: str

    @property
    def totals(self) -> Array:
        return self.run.parts[self.total][self.places]

    @property
    def millionths(self) -> Array:
        return self.run.measures(self.units, self.run.parts[self.units][self.places])

    @property
    def is_return(self) -> Array:
        is_return: Array = self.of_sale("kind") & 1 == 1
        return is_return

    def of_sale(self, part: str) -> Array:
        return self.run.parts[part][self.sale]

    def where(self, some: Array) -> "Lines":
        return self._replace(places=self.places[some], group=self.group[some], sale=self.sale[some])


def part_of(key: ProductKey) -> str:
    """The part of products that a key reads; the stores, if it is no part of products."""
    match key.kind:
        case "product":
            return IDS
        case "property":
            return PROPERTY + key.property
        case "store":
            return "store"


def values_of(tickets: Tickets, key: ProductKey) -> Dictionary:
    dictionaries = tickets.cached.dictionaries
    return dictionaries.stores if key.kind == "store" else dictionaries.product_values(part_of(key)).dictionary


class LineReader:
    """Reads the lines inside some groups, of tickets in one currency."""

    def __init__(self, tickets: Tickets, currency: Currency, inside: Sequence[ProductGroup]) -> None:
        if any(group.kind == "others" for group in inside):
            raise RefusedQuestion("The other groups cannot be opened together.")
        self._tickets = tickets
        self._kinds = tickets.kinds_of(currency)
        self._stores = [self._code_of(group) for group in inside if group.key.kind == "store"]
        self._inside = [group for group in inside if group.key.kind != "store"]

    def select(self, window: Window) -> Iterator[SalesSelection]:
        for selection in self._tickets.select(window):
            kind, store = selection.all_of("kind"), selection.all_of("store") if self._stores else None
            some = (kind == self._kinds[0]) | (kind == self._kinds[1])
            for code in self._stores:
                some &= store == code
            yield selection.where(some)

    def read(self, window: Window, key: ProductKey) -> Iterator[Lines]:
        """The lines of a window with their groups."""
        for selection in self.select(window):
            run = selection.run
            passing = self.passing(run)
            if passing.any():
                group = self._groups_of(run, key)
                yield from _lines_of(selection, PRODUCT_LINES, passing, group, is_by_store=key.kind == "store")
            if all(group.kind == "no_product" for group in self._inside):
                yield from _lines_of(selection, OTHER_LINES, None, None, is_by_store=key.kind == "store")

    def passing(self, run: SalesRun) -> Array:
        """A mask of the products of a run that are inside the groups."""
        products = np.ones(run.parts["starts"].size - 1, bool)
        for group in self._inside:
            codes = run.parts[part_of(group.key)]
            products &= codes == self._code_of(group) if group.kind != "no_product" else False
        return products

    def _code_of(self, group: ProductGroup) -> int:
        """A code that no product and no store has if the value is not known."""
        if group.kind == "unset":
            return NONE
        value = group.value
        if group.key.kind == "store":
            store_id = STORE.decode(group.value)
            code = NONE if store_id is None else self._tickets.cached.dictionaries.stores.find(store_id.bytes)
        else:
            code = values_of(self._tickets, group.key).find(value)
        return code if code >= 0 else NONE - 1

    def _groups_of(self, run: SalesRun, key: ProductKey) -> Array | None:
        """The group of each product; None if stores are the groups."""
        return None if key.kind == "store" else run.parts[part_of(key)].astype(np.int64) + FIRST_VALUE


def _lines_of(
    selection: SalesSelection,
    names: tuple[str, str, str],
    passing: Array | None,
    group_of_product: Array | None,
    *,
    is_by_store: bool,
) -> Iterator[Lines]:
    run = selection.run
    sale = run.parts[names[0]]
    among = selection.has(sale)
    if passing is not None and not passing.all():
        among &= np.repeat(passing, np.diff(run.parts["starts"]))
    index = np.flatnonzero(among)
    if not index.size:
        return
    sale = sale[index]
    if is_by_store:
        group = run.parts["store"][sale].astype(np.int64) + FIRST_VALUE
    elif group_of_product is None:
        group = np.full(index.size, NO_PRODUCT, np.int64)
    else:
        group = np.repeat(group_of_product, np.diff(run.parts["starts"]))[index]
    yield Lines(run, index, group, sale, names[1], names[2])


def count_distinct(pairs: Sequence[tuple[Array, Array]], groups: int, size: int) -> Array:
    """For pairs of arrays (groups, values below a size) how many distinct values each group has."""
    keys = np.concatenate([group * size + value for group, value in pairs]) if pairs else np.zeros(0, np.int64)
    keys.sort()
    is_first = np.ones(keys.size, bool)
    is_first[1:] = keys[1:] != keys[:-1]
    return np.bincount(keys[is_first] // max(1, size), minlength=groups)
