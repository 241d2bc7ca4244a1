"""Answers the question about sales: sums of tickets, or of their lines, by up to two dimensions.

A dimension gives each sale or line a code. The codes of both are combined to one number, and if there are many, those
that occur are ranked, so that the sums are arrays of at most `GROUPS_MAX` groups.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np

from regulars.analytics.answers.product_lines import LineReader, Lines, values_of
from regulars.analytics.answers.products import names_of
from regulars.analytics.answers.purchases import first_days
from regulars.analytics.answers.tickets import (
    RefusedQuestion,
    Tickets,
    Window,
    adjacent_buckets,
    buckets_of,
    date_of,
    whole_bucket,
    window_of,
)
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.numbers import Summands, sum_groups
from regulars.columns.engine.purchase_days import begins_of
from regulars.columns.engine.sales_runs import PRODUCT_IDS, SalesSelection
from regulars.columns.engine.threads import map_in_threads
from regulars.columns.model import IDENTIFIED_SALES, NO_CUSTOMER
from regulars.columns.questions import (
    GROUPS_MAX,
    MILLIONTHS,
    Dimension,
    Period,
    ProductKey,
    SalesAnswer,
    SalesQuestion,
    SalesRow,
)
from regulars.sales.model import Currency
from regulars.sales.totals.model import Sums

SUMMED_PARTS: Final = ("amount", "discount", "tax", "units", "lines")
_NEW, _KNOWN, _UNKNOWN = range(3)
# The combined numbers of which the occurring ones can be marked in an array.
_MARKED_MAX: Final = 20_000_000


class _Axis(NamedTuple):
    """A dimension: the name of each code, and the code of each sale of a selection; None for a dimension of lines."""

    names: Sequence[str | None]
    codes: Callable[[SalesSelection], Array] | None


class _Batch(NamedTuple):
    """Sales or lines of a run with the number of their group, what is added up of them, and the sales to count: each
    sale once in each of its groups."""

    groups: Array
    # Twice the code of the currency, plus 1 for a return.
    kind: Array
    # The parts `SUMMED_PARTS` with their factors; an empty array is 0.
    values: Sequence[tuple[Array, int]]
    # For sales the same array as `groups`.
    groups_of_sales: Array
    sales: SalesSelection


def answer_sales(tickets: Tickets, question: SalesQuestion, as_of: datetime) -> SalesAnswer:
    rows = _rows(tickets, question, question.period)
    compared = [] if question.comparison is None else _rows(tickets, question, question.comparison)
    names = _name_products(tickets, question, [*rows, *compared])
    return SalesAnswer(as_of=as_of, rows=tuple(rows), compared=tuple(compared), names=names)


def _rows(tickets: Tickets, question: SalesQuestion, period: Period) -> list[SalesRow]:
    sales_window = tickets.first_and_last_day()
    axes = [_axis(tickets, dimension, question, period, sales_window) for dimension in question.by]
    read = _read_tickets if question.lines_in is None else _read_lines
    sizes = [len(axis.names) for axis in axes]
    window = whole_bucket(period, sales_window).window
    numbers, batches = _rank(read(tickets, question, window, axes), int(np.prod(sizes)))
    if not numbers.size:
        return []
    sums = _sums(tickets, batches, numbers.size)
    customers = _count_customers(tickets, batches, numbers.size) if question.with_customers else None
    codes = np.unravel_index(numbers, sizes) if sizes else ()
    keys = [[axis.names[code] for code in of_axis.tolist()] for axis, of_axis in zip(axes, codes, strict=True)]
    return [
        SalesRow(
            keys=tuple(names[index] for names in keys),
            sums=of_group,
            customers={} if customers is None else {name: customers[index][name] for name in of_group},
        )
        for index, of_group in enumerate(sums)
        if of_group
    ]


def _axis(
    tickets: Tickets, dimension: Dimension, question: SalesQuestion, period: Period, sales_window: Window
) -> _Axis:
    stores = [UUID(bytes=value) for value in tickets.cached.dictionaries.stores.values]
    match dimension.kind:
        case "day" | "week" | "month":
            buckets = buckets_of(period, dimension.kind, sales_window)
            firsts = [date_of(first) for first in buckets.first.tolist()]
            if period is question.comparison:
                parts = question.compared_parts[dimension.kind]
                firsts, buckets = [first for first, _ in parts], adjacent_buckets([days for _, days in parts])
            names = [first.isoformat() for first in firsts]
            return _Axis(names, lambda selection: buckets.index_of(selection, tickets.zone))
        case "store":
            return _Axis([str(store) for store in stores], lambda selection: selection.of("store"))
        case "country":
            countries = sorted(set(question.countries.values()))
            codes = {country: code for code, country in enumerate(countries, 1)}
            of_store = np.array([codes.get(question.countries.get(store, ""), 0) for store in stores], np.int32)
            return _Axis([None, *countries], lambda selection: of_store.take(selection.of("store")))
        case "newness":
            return _Axis(("new", "known", "unknown"), _newness_codes(tickets, window_of(period)))
        case "product" | "property":
            # The groups of lines without a value become code 0.
            return _Axis([None, *values_of(tickets, line_key(dimension)).values], None)
        case "hour" | "segment":
            raise RefusedQuestion("Columns have days, and the members of one segment at a time.")


def _newness_codes(tickets: Tickets, window: Window) -> Callable[[SalesSelection], Array]:
    firsts = first_days(tickets)
    is_new = (firsts >= window[0]) & (firsts <= window[1])
    of_customer = np.where(tickets.members, np.where(is_new, _NEW, _KNOWN), _UNKNOWN).astype(np.int8)

    def codes(selection: SalesSelection) -> Array:
        customer = selection.of("customer")
        if selection.run.meta.kind != IDENTIFIED_SALES:
            return np.full(customer.size, _UNKNOWN, np.int8)
        return of_customer.take(customer)

    return codes


def line_key(dimension: Dimension) -> ProductKey:
    """The key by which lines are read; by store, if a sale decides about the dimension."""
    match dimension.kind:
        case "product" | "property":
            return ProductKey(dimension.kind, dimension.property)
        case _:
            return ProductKey("store")


def _combine(codes: Sequence[Array], axes: Sequence[_Axis], size: int) -> Array:
    """One number for the codes of all dimensions."""
    if len(codes) == 1:
        return codes[0]
    numbers = np.zeros(size, np.int64)
    for code, axis in zip(codes, axes, strict=True):
        numbers = numbers * len(axis.names) + code
    return numbers


def _read_tickets(tickets: Tickets, _question: SalesQuestion, window: Window, axes: Sequence[_Axis]) -> list[_Batch]:
    def read(selection: SalesSelection) -> _Batch:
        kind = selection.of("kind")
        groups = _combine([axis.codes(selection) for axis in axes if axis.codes is not None], axes, kind.size)
        values = [(selection.of(part), selection.run.factor_of(part)) for part in SUMMED_PARTS]
        return _Batch(groups, kind, values, groups, selection)

    return map_in_threads(read, tickets.select(window))


def _read_lines(tickets: Tickets, question: SalesQuestion, window: Window, axes: Sequence[_Axis]) -> list[_Batch]:
    if question.lines_in is None:
        raise RefusedQuestion("Products are counted in one currency.")
    reader = LineReader(tickets, question.lines_in, question.filters)
    purchase, refund = tickets.kinds_of(question.lines_in)
    # Each reading has the same lines in the same order, grouped by its key.
    readings = [list(reader.read(window, line_key(it))) for it in question.by or [Dimension("store")]]
    lines_of_runs: dict[int, list[tuple[Lines, ...]]] = {}
    for lines in zip(*readings, strict=True):
        lines_of_runs.setdefault(lines[0].run.meta.id, []).append(lines)

    def read(batches: Sequence[tuple[Lines, ...]]) -> _Batch:
        run = batches[0][0].run
        groups, sale, is_return, totals, units = (
            np.concatenate(arrays) for arrays in zip(*(_line_arrays(it, axes) for it in batches), strict=True)
        )
        pairs = np.sort(groups.astype(np.int64) * run.size + sale)
        groups_of_sales, sales = np.divmod(pairs[begins_of(pairs)], run.size)
        none = totals[:0], 1
        return _Batch(
            groups,
            np.where(is_return, refund, purchase),
            [(totals, 1), none, none, (units, 1), (np.ones(totals.size, np.int8), 1)],
            groups_of_sales,
            SalesSelection(run, 0, run.size, sales),
        )

    return map_in_threads(read, lines_of_runs.values())


def _line_arrays(readings: Sequence[Lines], axes: Sequence[_Axis]) -> tuple[Array, ...]:
    """The group, the sale, whether it is a return, the total and the millionths of each line."""
    lines = readings[0]
    selection = SalesSelection(lines.run, 0, lines.run.size, lines.sale)
    codes = [
        np.maximum(it.look_up(np.arange(int(it.groups.max()) + 1)), 1) - 1
        if axis.codes is None
        else axis.codes(selection)
        for it, axis in zip(readings, axes, strict=False)
    ]
    units = lines.units.astype(np.int64) * lines.unit_scale
    return _combine(codes, axes, lines.sale.size), lines.sale, lines.is_return, lines.totals, units


def _rank(batches: Sequence[_Batch], size: int) -> tuple[Array, Sequence[_Batch]]:
    """The combined numbers of the groups, and the batches with the indexes of these numbers instead of them."""
    if size <= GROUPS_MAX:
        return np.arange(size), batches
    numbers = np.zeros(0, np.int64)
    if size <= _MARKED_MAX:
        occurs = np.zeros(size, bool)
        for batch in batches:
            occurs[batch.groups] = True
        numbers = np.flatnonzero(occurs)
    if size > _MARKED_MAX or numbers.size > GROUPS_MAX:
        raise RefusedQuestion(f"There are more than {GROUPS_MAX:,} groups: narrow it, with fewer days or a filter.")
    index_of = np.zeros(size, np.int32)
    index_of[numbers] = np.arange(numbers.size)

    def rank(batch: _Batch) -> _Batch:
        groups = index_of.take(batch.groups)
        is_of_sales = batch.groups_of_sales is batch.groups
        of_sales = groups if is_of_sales else index_of.take(batch.groups_of_sales)
        return batch._replace(groups=groups, groups_of_sales=of_sales)

    return numbers, map_in_threads(rank, batches)


def _sums(tickets: Tickets, batches: Sequence[_Batch], groups: int) -> list[Mapping[Currency, Sums]]:
    """The sums of each group by currency. Sums are reshaped to group, currency and whether it is a return."""
    kinds = 2 * len(tickets.currencies)
    shape, size = (groups, kinds // 2, 2), groups * kinds

    def read(batch: _Batch) -> tuple[Array, Array, list[Summands]]:
        of_sales = indexes = batch.groups.astype(np.int64) * kinds + batch.kind
        if batch.groups_of_sales is not batch.groups:
            of_sales = batch.groups_of_sales.astype(np.int64) * kinds + batch.sales.of("kind")
        identified = of_sales
        if batch.sales.run.meta.kind != IDENTIFIED_SALES:
            identified = of_sales[batch.sales.of("customer") != NO_CUSTOMER]
        summands = [Summands(indexes[: values.size], values, factor) for values, factor in batch.values]
        return np.bincount(of_sales, minlength=size), np.bincount(identified, minlength=size), summands

    none = np.zeros(size, np.int64)
    *counted, summed = zip(*map_in_threads(read, batches), (none, none, []), strict=True)
    counts, identified = (sum(arrays, none).reshape(shape).tolist() for arrays in counted)
    amount, discount, tax, units, lines = (
        sum_groups([summands[part] for summands in summed if summands], size).reshape(shape).tolist()
        for part in range(len(SUMMED_PARTS))
    )
    return [
        {
            currency: Sums(
                purchases=counts[index][code][0],
                returns=counts[index][code][1],
                identified=sum(identified[index][code]),
                gross_cents=amount[index][code][0],
                returned_cents=-amount[index][code][1],
                discount_cents=discount[index][code][0],
                tax_cents=sum(tax[index][code]),
                units=Decimal(units[index][code][0]) / MILLIONTHS,
                returned_units=Decimal(-units[index][code][1]) / MILLIONTHS,
                lines=lines[index][code][0],
            )
            for code, currency in enumerate(tickets.currencies)
            if any(counts[index][code])
        }
        for index in range(groups)
    ]


def _count_customers(tickets: Tickets, batches: Sequence[_Batch], groups: int) -> list[dict[Currency, int]]:
    """The distinct customers who bought, of each group by currency."""
    currencies, customers = tickets.currencies, tickets.customer_count

    def keys_of(batch: _Batch) -> Array:
        kind, customer = batch.sales.of("kind"), batch.sales.of("customer")
        # The lowest bit of a kind is set for returns.
        indexes = np.flatnonzero(kind & 1 == 0)
        indexes = indexes[tickets.members.take(customer[indexes])]
        group = batch.groups_of_sales[indexes].astype(np.int64) * len(currencies) + (kind[indexes] >> 1)
        keys = np.sort(group * customers + customer[indexes])
        return keys[begins_of(keys)]

    runs = [batch for batch in batches if batch.sales.run.meta.kind == IDENTIFIED_SALES]
    keys = np.sort(np.concatenate([np.zeros(0, np.int64), *map_in_threads(keys_of, runs)]), kind="stable")
    counts = np.bincount(keys[begins_of(keys)] // max(1, customers), minlength=groups * len(currencies))
    return [dict(zip(currencies, row, strict=True)) for row in counts.reshape(groups, len(currencies)).tolist()]


def _name_products(tickets: Tickets, question: SalesQuestion, rows: Sequence[SalesRow]) -> Mapping[str, str]:
    if not any(dimension.kind == "product" for dimension in question.by):
        return {}
    position = [dimension.kind for dimension in question.by].index("product")
    dictionary = tickets.cached.dictionaries.product_values(PRODUCT_IDS).dictionary
    codes = {dictionary.find(key): key for row in rows if (key := row.keys[position]) is not None}
    names = names_of(tickets, list(codes), [tickets.cached.sales[run.id] for run in tickets.runs()])
    return {codes[code]: name for code, name in names.items()}
