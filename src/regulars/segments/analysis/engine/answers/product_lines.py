"""Lines of sales by what a question groups them by: the product, a property of it, or the store."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from regulars.kit.ids import STORE
from regulars.sales.model import Currency
from regulars.segments.analysis.engine.answers.tickets import RefusedQuestion, Tickets, Window
from regulars.segments.analysis.engine.encoding import NONE, Array, Dictionary
from regulars.segments.analysis.engine.numbers import SUM_MAX, Summands
from regulars.segments.analysis.engine.purchase_days import begins_of
from regulars.segments.analysis.engine.sales_runs import IDS, PROPERTY, SalesRun, SalesSelection
from regulars.segments.analysis.questions import ProductGroup, ProductKey

# Groups of lines: without a product, of products without the value, and then one for each value.
NO_PRODUCT, UNSET, FIRST_VALUE = range(3)
PRODUCT_LINES: Final = ("sale", "line_units", "total")
OTHER_LINES: Final = ("other_sale", "other_units", "other_total")
_PURCHASE, _RETURN, _NOT_COUNTED = range(3)


class Lines(NamedTuple):
    """Some lines of a run: the sale of each, whether it was returned, and its values.

    `groups` has the group of each line or, with `starts`, of each range of lines that stand together.
    """

    run: SalesRun
    sale: Array
    is_return: Array
    totals: Array
    units: Array
    # By which units are multiplied, to have millionths.
    factor: int
    groups: Array
    starts: Array | None = None

    def look_up(self, of_group: Array) -> Array:
        """For each line the element of its group."""
        values = of_group.take(self.groups)
        return values if self.starts is None else np.repeat(values, np.diff(self.starts, append=self.sale.size))

    def summands(self, values: Array, factor: int = 1) -> Summands:
        """To add up values of lines by group; ranges are added up here, which takes a third of the time."""
        if self.starts is None or values.size * max(abs(int(values.min())), abs(int(values.max()))) > SUM_MAX:
            return Summands(self.look_up(np.arange(int(self.groups.max()) + 1)), values, factor)
        return Summands(self.groups, np.add.reduceat(values, self.starts, dtype=np.int64), factor)


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

    def read(self, window: Window, key: ProductKey) -> Iterator[Lines]:
        """The lines of a window with their groups."""
        for selection in self._tickets.mask(window):
            run = selection.run
            sales = self._kinds_of(selection)
            passing = self.passing(run)
            if passing.any():
                by_product = None if passing.all() else passing
                group = None if key.kind == "store" else run.parts[part_of(key)] + np.int32(FIRST_VALUE)
                yield from _lines_of(selection, sales, PRODUCT_LINES, by_product, group)
            if all(group.kind == "no_product" for group in self._inside):
                group = None if key.kind == "store" else np.full(1, NO_PRODUCT, np.int32)
                yield from _lines_of(selection, sales, OTHER_LINES, None, group)

    def passing(self, run: SalesRun) -> Array:
        """A mask of the products of a run that are inside the groups."""
        products = np.ones(run.parts["starts"].size - 1, bool)
        for group in self._inside:
            codes = run.parts[part_of(group.key)]
            products &= codes == self._code_of(group) if group.kind != "no_product" else False
        return products

    def _kinds_of(self, selection: SalesSelection) -> Array:
        """For each sale of the run whether it is a counted purchase or return: one lookup for each line instead of
        several."""
        sales = np.full(selection.run.size, _NOT_COUNTED, np.int8)
        kind, inside = selection.all_of("kind"), sales[selection.first : selection.last]
        is_purchase, is_return = (kind == self._kinds[0]).view(np.int8), (kind == self._kinds[1]).view(np.int8)
        inside -= is_purchase * np.int8(_NOT_COUNTED - _PURCHASE) + is_return * np.int8(_NOT_COUNTED - _RETURN)
        if selection.some is not None:
            inside[~selection.some] = _NOT_COUNTED
        for code in self._stores:
            inside[selection.all_of("store") != code] = _NOT_COUNTED
        return sales

    def _code_of(self, group: ProductGroup) -> int:
        """A code that no product and no store has if the value is not known."""
        if group.kind == "unset":
            return NONE
        if group.key.kind == "store":
            store_id = STORE.decode(group.value)
            code = NONE if store_id is None else self._tickets.cached.dictionaries.stores.find(store_id.bytes)
        else:
            code = values_of(self._tickets, group.key).find(group.value)
        return code if code >= 0 else NONE - 1


def _lines_of(
    selection: SalesSelection,
    sales: Array,
    names: tuple[str, str, str],
    passing: Array | None,
    group_of_product: Array | None,
) -> Iterator[Lines]:
    """`group_of_product` None: stores are the groups; of lines without a product it has one element."""
    run = selection.run
    sale_of_line = run.parts[names[0]]
    places = _places(selection, sale_of_line)
    if passing is not None:
        is_passing = np.repeat(passing, np.diff(run.parts["starts"]))
        places = np.flatnonzero(is_passing) if places is None else places[is_passing[places]]
    sale = sale_of_line if places is None else sale_of_line[places]
    kind = sales.take(sale)
    counted = np.flatnonzero(kind != _NOT_COUNTED)
    if not counted.size:
        return
    places = counted if places is None else places[counted]
    sale, kind = sale[counted], kind[counted]
    units, totals = (run.parts[name][places] for name in names[1:])
    lines = Lines(run, sale, kind == _RETURN, totals, units, run.factor_of(names[1]), np.zeros(1, np.int32))
    if group_of_product is None:
        yield lines._replace(groups=run.parts["store"].take(sale) + np.int32(FIRST_VALUE))
    elif names is OTHER_LINES:
        yield lines._replace(groups=group_of_product, starts=np.zeros(1, np.int64))
    else:
        edges = np.searchsorted(places, run.parts["starts"])
        has_lines = edges[1:] > edges[:-1]
        yield lines._replace(groups=group_of_product[has_lines], starts=edges[:-1][has_lines])


def _places(selection: SalesSelection, sale_of_line: Array) -> Array | None:
    """The lines of the slice; None if most lines are."""
    if 2 * (selection.last - selection.first) > selection.run.size:
        return None
    return np.flatnonzero((sale_of_line >= selection.first) & (sale_of_line < selection.last))


class DistinctPairs(NamedTuple):
    """Distinct pairs of a group and a value as sorted numbers: the group times the size, plus the value."""

    keys: Array
    size: int
    # How many values each group has.
    counts: Array

    def of_groups(self, groups: int) -> tuple[Array, Array]:
        """The groups and the values of the pairs of the first groups."""
        counts = self.counts[:groups]
        keys = self.keys[: int(counts.sum())]
        group: Array = np.repeat(np.arange(groups).astype(keys.dtype), counts)
        return group, keys - group * np.array(self.size, keys.dtype)


def distinct_pairs(pairs: Sequence[tuple[Array, Array]], groups: int, size: int) -> DistinctPairs:
    """Of pairs of arrays (groups, values below a size). Small numbers are sorted in half of the time."""
    kind = np.dtype(np.uint32 if groups * size < 1 << 32 else np.int64)
    factor: Array = np.array(size, kind)
    keys = np.concatenate(
        [np.zeros(0, kind), *(group.astype(kind) * factor + value.astype(kind) for group, value in pairs)]
    )
    keys.sort()
    keys = keys[np.flatnonzero(begins_of(keys))]
    ends = np.searchsorted(keys, (np.arange(1, groups, dtype=np.int64) * size).astype(kind))
    return DistinctPairs(keys, size, np.diff(np.concatenate(([0], ends, [keys.size]))))
