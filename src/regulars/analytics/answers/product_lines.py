"""Reads lines of sales, grouped by the key of the question: the product, a property of the product, or the store.

Sales are read run by run; a run is an immutable stored chunk of sales.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from regulars.analytics.answers.tickets import RefusedQuestion, Tickets, Window
from regulars.columns.engine.encoding import NONE, Array, Dictionary
from regulars.columns.engine.numbers import SUM_MAX, Summands, sum_bound
from regulars.columns.engine.purchase_days import begins_of
from regulars.columns.engine.sales_runs import PRODUCT_IDS, PROPERTY_PREFIX, SalesRun, SalesSelection
from regulars.columns.engine.threads import map_in_threads
from regulars.columns.questions import ProductGroup, ProductKey
from regulars.kit.ids import STORE
from regulars.sales.model import Currency

# Group numbers: lines without a product, products without the property, then one group per value.
NO_PRODUCT, UNSET, FIRST_VALUE = range(3)
PRODUCT_LINES: Final = ("sale", "line_units", "total")
OTHER_LINES: Final = ("other_sale", "other_units", "other_total")
_PURCHASE, _RETURN, _NOT_COUNTED = range(3)
_DISTINCT_SHARE_MIN: Final = 0.9


class Lines(NamedTuple):
    """Lines of one run: the sale of each line, whether it is a return, and its values.

    `groups` has the group of each line or, with `starts`, of each range of adjacent lines; `starts` has the first line
    of each range.
    """

    run: SalesRun
    sale: Array
    is_return: Array
    totals: Array
    units: Array
    # `units` times this number are millionths of a unit.
    unit_scale: int
    groups: Array
    starts: Array | None = None

    def look_up(self, of_group: Array) -> Array:
        """For each line the element of `of_group` at the number of its group."""
        values = of_group.take(self.groups)
        return values if self.starts is None else np.repeat(values, np.diff(self.starts, append=self.sale.size))

    def summands(self, values: Array, factor: int = 1) -> Summands:
        """The values of lines, to be summed by group. Ranges of lines are summed here, which is three times as fast."""
        sum_max = sum_bound(values)
        if self.starts is None or sum_max > SUM_MAX:
            return Summands(self.look_up(np.arange(int(self.groups.max()) + 1)), values, factor)
        # A conversion before the sum is faster than a conversion inside it, and 32-bit numbers are added faster.
        longest = int(np.diff(self.starts, append=values.size).max())
        dtype = np.int32 if sum_max // values.size * longest <= np.iinfo(np.int32).max else np.int64
        return Summands(self.groups, np.add.reduceat(values.astype(dtype, copy=False), self.starts), factor)

    def returned(self) -> Summands:
        """The returned units, to be summed by group."""
        indexes = np.flatnonzero(self.is_return)
        ranges = indexes if self.starts is None else np.searchsorted(self.starts, indexes, "right") - 1
        return Summands(self.groups[ranges], self.units[indexes], self.unit_scale)


def part_of(key: ProductKey) -> str:
    """The part of the sales data that a key reads."""
    match key.kind:
        case "product":
            return PRODUCT_IDS
        case "property":
            return PROPERTY_PREFIX + key.property
        case "store":
            return "store"


def values_of(tickets: Tickets, key: ProductKey) -> Dictionary:
    dictionaries = tickets.cached.dictionaries
    return dictionaries.stores if key.kind == "store" else dictionaries.product_values(part_of(key)).dictionary


class LineReader:
    """Reads the lines that belong to all groups of `filters`, of tickets in one currency."""

    def __init__(self, tickets: Tickets, currency: Currency, filters: Sequence[ProductGroup]) -> None:
        if any(group.kind == "others" for group in filters):
            raise RefusedQuestion("The other groups cannot be opened together.")
        self._tickets = tickets
        self._kinds = tickets.kinds_of(currency)
        self._stores = [self._code_of(group) for group in filters if group.key.kind == "store"]
        self._product_filters = [group for group in filters if group.key.kind != "store"]

    def read(self, window: Window, key: ProductKey) -> Iterator[Lines]:
        """The lines of a window with their groups."""
        return chain.from_iterable(
            map_in_threads(lambda selection: list(self._read_run(selection, key)), self._tickets.mask(window))
        )

    def _read_run(self, selection: SalesSelection, key: ProductKey) -> Iterator[Lines]:
        run = selection.run
        sales = self._classify_sales(selection)
        products = self.match_products(run)
        if products.any():
            by_product = None if products.all() else products
            group = None if key.kind == "store" else run.parts[part_of(key)] + np.int32(FIRST_VALUE)
            yield from _lines_of(selection, sales, PRODUCT_LINES, by_product, group)
        if all(group.kind == "no_product" for group in self._product_filters):
            group = None if key.kind == "store" else np.full(1, NO_PRODUCT, np.int32)
            yield from _lines_of(selection, sales, OTHER_LINES, None, group)

    def match_products(self, run: SalesRun) -> Array:
        """A mask of the products of a run that belong to all groups of `filters`."""
        products = np.ones(run.parts["starts"].size - 1, bool)
        for group in self._product_filters:
            codes = run.parts[part_of(group.key)]
            products &= codes == self._code_of(group) if group.kind != "no_product" else False
        return products

    def _classify_sales(self, selection: SalesSelection) -> Array:
        """For each sale of the run: _PURCHASE, _RETURN or _NOT_COUNTED. So each line needs one lookup instead of
        several."""
        sales = np.full(selection.run.size, _NOT_COUNTED, np.int8)
        kind, in_window = selection.all_of("kind"), sales[selection.first : selection.last]
        is_purchase, is_return = (kind == self._kinds[0]).view(np.int8), (kind == self._kinds[1]).view(np.int8)
        in_window -= is_purchase * np.int8(_NOT_COUNTED - _PURCHASE) + is_return * np.int8(_NOT_COUNTED - _RETURN)
        if selection.row_filter is not None:
            in_window[~selection.row_filter] = _NOT_COUNTED
        for code in self._stores:
            in_window[selection.all_of("store") != code] = _NOT_COUNTED
        return sales

    def _code_of(self, group: ProductGroup) -> int:
        """The code of a group's value; if the value does not exist, a code that no product and no store has."""
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
    products: Array | None,
    group_of_product: Array | None,
) -> Iterator[Lines]:
    """`group_of_product` is None if the groups are stores; for lines without a product it has one element."""
    run = selection.run
    sale_of_line = run.parts[names[0]]
    indexes = _line_indexes(selection, sale_of_line)
    if products is not None:
        is_matching = np.repeat(products, np.diff(run.parts["starts"]))
        indexes = np.flatnonzero(is_matching) if indexes is None else indexes[is_matching[indexes]]
    sale = sale_of_line if indexes is None else sale_of_line[indexes]
    kind = sales.take(sale)
    is_counted = kind != _NOT_COUNTED
    if not is_counted.all():
        counted = np.flatnonzero(is_counted)
        indexes = counted if indexes is None else indexes[counted]
        sale, kind = sale[counted], kind[counted]
    if not sale.size:
        return
    units, totals = (run.parts[name] if indexes is None else run.parts[name][indexes] for name in names[1:])
    lines = Lines(run, sale, kind == _RETURN, totals, units, run.factor_of(names[1]), np.zeros(1, np.int32))
    if group_of_product is None:
        yield lines._replace(groups=run.parts["store"].take(sale) + np.int32(FIRST_VALUE))
    elif names is OTHER_LINES:
        yield lines._replace(groups=group_of_product, starts=np.zeros(1, np.int64))
    else:
        edges = run.parts["starts"] if indexes is None else np.searchsorted(indexes, run.parts["starts"])
        has_lines = edges[1:] > edges[:-1]
        yield lines._replace(groups=group_of_product[has_lines], starts=edges[:-1][has_lines])


def _line_indexes(selection: SalesSelection, sale_of_line: Array) -> Array | None:
    """The indexes of the lines whose sale is in the selection; None, which means all lines, if it has more than half of
    the run."""
    if 2 * (selection.last - selection.first) > selection.run.size:
        return None
    return np.flatnonzero((sale_of_line >= selection.first) & (sale_of_line < selection.last))


class Pairs(NamedTuple):
    """Pairs of a row of the answer and a number below `size`, sorted; some pairs may be repeated.

    A pair is stored as one integer, its key: the row times `size`, plus the number. `edges` has the index of the first
    pair of each row, and the end. `counts` has the number of distinct pairs of each row.
    """

    keys: Array
    edges: Array
    counts: Array
    size: int

    def numbers(self) -> Array:
        return (self.keys - self._first_keys(self.size)).astype(np.intp)

    def keys_with(self, numbers: Array, size: int) -> Array:
        """The keys of the same rows with other numbers, which are below `size`."""
        keys = self._first_keys(size)
        keys += numbers.astype(keys.dtype, copy=False)
        return keys

    def without_repeated(self) -> "Pairs":
        """The distinct pairs, or the same pairs if few are repeated: then a copy costs more than it saves later."""
        if self.counts.sum() > _DISTINCT_SHARE_MIN * self.keys.size:
            return self
        keys = self.keys[np.flatnonzero(begins_of(self.keys))]
        return self._replace(keys=keys, edges=np.concatenate(([0], np.cumsum(self.counts))))

    def _first_keys(self, size: int) -> Array:
        return np.repeat(first_keys(self.counts.size, size)[:-1], np.diff(self.edges))


def first_keys(rows: int, size: int) -> Array:
    """The key of each row with the number 0, and the key after the last row. 32-bit keys are sorted twice as fast."""
    keys: Array = np.arange(rows + 1, dtype=np.int64) * size
    return keys.astype(np.uint32) if keys[-1] < (1 << 32) - 1 else keys


def pairs_of_lines(batches: Sequence[Lines], row_of_group: Array, rows: int) -> Pairs:
    """The pairs of rows and sales of purchased lines; the lines are of one run."""
    size = batches[0].run.size
    firsts = first_keys(rows, size)
    keys = []
    for batch in batches:
        keys_of_batch = batch.look_up(firsts[row_of_group])
        keys_of_batch += batch.sale.astype(firsts.dtype, copy=False)
        keys_of_batch[batch.is_return] = firsts[-1]
        keys.append(keys_of_batch)
    return sort_pairs(keys, rows, size).without_repeated()


def sort_pairs(keys: Sequence[Array], rows: int, size: int) -> Pairs:
    """Sort keys, drop those after the last row, and count the distinct ones."""
    sorted_keys = np.concatenate([first_keys(rows, size)[:0], *keys])
    sorted_keys.sort()
    edges = np.searchsorted(sorted_keys, first_keys(rows, size))
    sorted_keys = sorted_keys[: edges[-1]]
    begins = begins_of(sorted_keys)
    # A count of a slice takes a hundredth of the time in which the distinct keys are copied.
    counts = np.array([np.count_nonzero(begins[first:end]) for first, end in pairwise(edges.tolist())])
    return Pairs(sorted_keys, edges, counts, size)
