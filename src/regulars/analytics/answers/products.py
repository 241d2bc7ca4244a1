"""Answers the question about products: net, units, returns, tickets and customers of the largest groups of products,
and of all smaller groups together.

Sales are read run by run; a run is an immutable stored chunk of sales.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np

from regulars.analytics.answers.product_lines import (
    FIRST_VALUE,
    NO_PRODUCT,
    UNSET,
    LineReader,
    Lines,
    first_keys,
    pairs_of_lines,
    sort_pairs,
    values_of,
)
from regulars.analytics.answers.tickets import Tickets, window_of
from regulars.columns.engine.encoding import Array, Dictionary
from regulars.columns.engine.numbers import Summands, sum_groups
from regulars.columns.engine.sales_conditions import overlaps
from regulars.columns.engine.sales_runs import PRODUCT_IDS, PRODUCT_NAMES, SalesRun, select_window
from regulars.columns.engine.threads import map_in_threads
from regulars.columns.model import IDENTIFIED_SALES, NO_CUSTOMER
from regulars.columns.questions import (
    PRODUCT_ROWS_MAX,
    TREND_WEEKS,
    ProductFigures,
    ProductGroup,
    ProductRow,
    ProductsAnswer,
    ProductsQuestion,
)
from regulars.kit.ids import STORE


class _Ranks(NamedTuple):
    """The groups that get a row of their own, and the row of each group; all smaller groups share the last row.
    `total_groups` counts all groups."""

    groups: Sequence[int]
    of_group: Array
    total_groups: int

    @property
    def rows(self) -> int:
        return len(self.groups) + 1


def answer_products(tickets: Tickets, question: ProductsQuestion, as_of: datetime) -> ProductsAnswer:
    reader = LineReader(tickets, question.currency, question.filters)
    window = window_of(question.period)
    lines = list(reader.read(window, question.by))
    values = values_of(tickets, question.by)
    sums = _sums(lines, FIRST_VALUE + len(values))
    compared_sums = None
    if question.comparison is not None:
        compared_sums = _sums(list(reader.read(window_of(question.comparison), question.by)), sums.present.size)
    present = sums.present if compared_sums is None else sums.present | compared_sums.present
    ranks = _rank(sums.net, present, values, min(question.rows_max, PRODUCT_ROWS_MAX))
    weekly_nets = _weekly_nets(tickets, reader, question, lines, ranks)
    counts = _count(tickets, lines, ranks)
    figures = _figures(ranks, counts, weekly_nets, sums, compared_sums)
    # The name of a product that was sold only in the comparison period may be in any run.
    run_ids = {batch.run.meta.id for batch in lines} if compared_sums is None else {run.id for run in tickets.runs()}
    runs = [tickets.cached.sales[run_id] for run_id in run_ids]
    names = _names(tickets, ranks.groups, runs) if question.by.kind == "product" else {}
    rows = [
        ProductRow(_group(tickets, question, group), figures[row], names.get(group))
        for row, group in enumerate(ranks.groups)
    ]
    if ranks.total_groups > len(ranks.groups):
        rows.append(ProductRow(ProductGroup(question.by, "others"), figures[ranks.rows - 1]))
    return ProductsAnswer(
        as_of=as_of,
        rows=tuple(rows),
        whole=figures[ranks.rows],
        identified=counts.identified,
        groups=ranks.total_groups,
    )


class _Sums(NamedTuple):
    """Sums for each group; `present` is a mask of the groups that have lines."""

    net: Array
    sold: Array
    returned: Array
    present: Array

    def of_rows(self, ranks: _Ranks) -> tuple[list[int], list[int], list[int]]:
        """The sums for each row, followed by the total."""
        net, sold, returned = (
            sum_groups([Summands(ranks.of_group, values)], ranks.rows).tolist()
            for values in (self.net, self.sold, self.returned)
        )
        return [*net, sum(net)], [*sold, sum(sold)], [*returned, sum(returned)]


def _sums(lines: Sequence[Lines], size: int) -> _Sums:
    def summands_of(batch: Lines) -> tuple[Summands, Summands, Summands]:
        return batch.summands(batch.totals), batch.summands(batch.units, batch.unit_scale), batch.returned()

    present = np.zeros(size, bool)
    for batch in lines:
        present[batch.groups] = True
    totals, units, returned = zip(*map_in_threads(summands_of, lines), strict=True) if lines else ((), (), ())
    # Returned units are negative.
    returned_sums = sum_groups(returned, size)
    return _Sums(sum_groups(totals, size), sum_groups(units, size) - returned_sums, -returned_sums, present)


def _rank(nets: Array, present: Array, values: Dictionary, rows_max: int) -> _Ranks:
    """Rank the groups by net, the largest first, and equal ones by value; the groups without a value come last."""
    groups = FIRST_VALUE + np.flatnonzero(present[FIRST_VALUE:])
    if groups.size > rows_max:
        # There may be millions of groups, so only the largest are sorted.
        groups = groups[np.argpartition(-nets[groups], rows_max)[:rows_max]]
    largest = sorted(groups.tolist(), key=lambda group: (-nets[group], values.values[group - FIRST_VALUE]))
    without_value = [group for group in (UNSET, NO_PRODUCT) if present[group]]
    chosen = [*largest, *without_value]
    of_group = np.full(nets.size, len(chosen), np.int32)
    of_group[chosen] = np.arange(len(chosen))
    return _Ranks(chosen, of_group, int(np.count_nonzero(present)))


class _Counts(NamedTuple):
    """For each row the number of purchases with a line of the row, and of the customers who made them; each list ends
    with the number for all rows together. `identified` counts the purchases of all rows that have a customer."""

    purchases: list[int]
    customers: list[int]
    identified: int


def _figures(
    ranks: _Ranks, counts: _Counts, weekly_nets: Array, sums: _Sums, compared_sums: _Sums | None
) -> list[ProductFigures]:
    """The figures of each row, followed by those of all rows together."""
    net, sold, returned = sums.of_rows(ranks)
    compared_net = None if compared_sums is None else compared_sums.of_rows(ranks)[0]
    weeks = np.vstack((weekly_nets, weekly_nets.sum(axis=0)))
    return [
        ProductFigures(
            net_cents=net[row],
            sold_millionths=sold[row],
            returned_millionths=returned[row],
            tickets=counts.purchases[row],
            customers=counts.customers[row],
            weekly_net_cents=tuple(weeks[row].tolist()),
            compared_net_cents=None if compared_net is None else compared_net[row],
        )
        for row in range(ranks.rows + 1)
    ]


class _Purchases(NamedTuple):
    """Purchases of one run: their number for each row and for all rows together, how many of these have a customer, and
    their customers."""

    counts: Array
    total: int
    identified: int
    # The keys of the pairs of row and customer, not distinct.
    customers: Array


def _count(tickets: Tickets, lines: Sequence[Lines], ranks: _Ranks) -> _Counts:
    # A sale may have lines with and without a product, which are in separate batches, so sales are counted per run.
    batches_of_runs: dict[int, list[Lines]] = {}
    for batch in lines:
        batches_of_runs.setdefault(batch.run.meta.id, []).append(batch)
    has_bought = np.zeros(tickets.customer_count, bool)
    runs = map_in_threads(lambda batches: _purchases_of(tickets, batches, ranks, has_bought), batches_of_runs.values())
    counts = np.zeros(ranks.rows, np.int64)
    for run in runs:
        counts += run.counts
    customers = _count_customers([run.customers for run in runs], counts, tickets.customer_count)
    return _Counts(
        [*counts.tolist(), sum(run.total for run in runs)],
        [*customers.tolist(), int(np.count_nonzero(has_bought & tickets.members))],
        sum(run.identified for run in runs),
    )


def _count_customers(keys: Sequence[Array], tickets: Array, size: int) -> Array:
    """The number of customers of each row; the keys are sorted by row. Two threads take about half of the keys each."""
    rows = tickets.size
    middle = int(np.searchsorted(np.cumsum(tickets), tickets.sum() / 2))

    def count_half(half: tuple[int, int]) -> Array:
        edges = first_keys(rows, size)[list(half)]
        keys_of_half = [of_run[slice(*np.searchsorted(of_run, edges))] for of_run in keys]
        return sort_pairs(keys_of_half, rows, size).counts

    low, high = map_in_threads(count_half, [(0, middle), (middle, rows)])
    return low + high


def _purchases_of(tickets: Tickets, batches: Sequence[Lines], ranks: _Ranks, has_bought: Array) -> _Purchases:
    """Count the purchases of one run, and set `has_bought` for their customers; all threads set the same array."""
    run = batches[0].run
    pairs = pairs_of_lines(batches, ranks.of_group, ranks.rows)
    sale = pairs.numbers()
    is_sold = np.zeros(run.size, bool)
    is_sold[sale] = True
    customer = run.parts["customer"]
    total = int(np.count_nonzero(is_sold))
    if run.meta.kind != IDENTIFIED_SALES:
        identified = int(np.count_nonzero(is_sold & (customer != NO_CUSTOMER)))
        return _Purchases(pairs.counts, total, identified, pairs.keys[:0])
    has_bought[customer[is_sold]] = True
    of_pairs = customer.take(sale)
    keys = pairs.keys_with(of_pairs, tickets.customer_count)
    members = tickets.members_of(of_pairs)
    customers = keys if members is None else keys[members]
    return _Purchases(pairs.counts, total, total, customers)


def _weekly_nets(
    tickets: Tickets, reader: LineReader, question: ProductsQuestion, lines: Sequence[Lines], ranks: _Ranks
) -> Array:
    """The net of each row in each of the weeks that end with the last day of the period; `lines` are of the period."""
    period_first, last = window_of(question.period)
    first = last - 7 * TREND_WEEKS + 1

    def nets_by_row_and_week(batch: Lines) -> Summands:
        recent = np.flatnonzero(select_window(batch.run, (first, last), tickets.zone).has(batch.sale))
        week = (batch.run.days(tickets.zone).take(batch.sale[recent]) - first) // 7
        return Summands(batch.look_up(ranks.of_group)[recent] * TREND_WEEKS + week, batch.totals[recent])

    batches = lines if period_first <= first else list(reader.read((first, last), question.by))
    recent_batches = [it for it in batches if overlaps(it.run.meta.first_s, it.run.meta.last_s, (first, last))]
    values = map_in_threads(nets_by_row_and_week, recent_batches)
    return sum_groups(values, ranks.rows * TREND_WEEKS).reshape(-1, TREND_WEEKS)


def _group(tickets: Tickets, question: ProductsQuestion, group: int) -> ProductGroup:
    if group < FIRST_VALUE:
        return ProductGroup(question.by, "no_product" if group == NO_PRODUCT else "unset")
    value = values_of(tickets, question.by).values[group - FIRST_VALUE]
    return ProductGroup(question.by, "value", STORE.encode(UUID(bytes=value)) if question.by.kind == "store" else value)


def _names(tickets: Tickets, groups: Sequence[int], runs: Sequence[SalesRun]) -> dict[int, str]:
    codes = [group - FIRST_VALUE for group in groups]
    return {code + FIRST_VALUE: name for code, name in names_of(tickets, codes, runs).items()}


def names_of(tickets: Tickets, codes: Sequence[int], runs: Sequence[SalesRun]) -> dict[int, str]:
    """The name under which each product was last sold in these runs, by the code of the product; products without a
    name are absent."""
    all_names = tickets.cached.dictionaries.product_values(PRODUCT_NAMES).dictionary.values
    known_codes = np.array([code for code in codes if code >= 0], np.int64)
    names: dict[int, str] = {}
    for run in sorted(runs, key=lambda it: it.meta.last_s or 0):
        products = np.flatnonzero(np.isin(run.parts[PRODUCT_IDS], known_codes) & (run.parts[PRODUCT_NAMES] >= 0))
        # The sales of a product ascend, so the last line is of the last sale.
        last_sale = run.parts["sale"][run.parts["starts"][products + 1] - 1]
        products = products[np.argsort(last_sale, kind="stable")]
        codes_and_names = (run.parts[part][products].tolist() for part in (PRODUCT_IDS, PRODUCT_NAMES))
        names |= {code: all_names[name] for code, name in zip(*codes_and_names, strict=True)}
    return names
