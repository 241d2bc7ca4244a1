"""Answers the question about products: net, units, returns, tickets and customers of the largest groups of products,
and of all smaller groups together.

Sales are read run by run; a run is an immutable stored chunk of sales.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np

from regulars.kit.ids import STORE
from regulars.segments.analysis.engine.answers.product_lines import (
    FIRST_VALUE,
    NO_PRODUCT,
    UNSET,
    DistinctPairs,
    LineReader,
    Lines,
    distinct_pairs,
    values_of,
)
from regulars.segments.analysis.engine.answers.tickets import Tickets, window_of
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import Summands, sum_groups
from regulars.segments.analysis.engine.sales_runs import PRODUCT_IDS, PRODUCT_NAMES, SalesRun
from regulars.segments.analysis.engine.threads import map_in_threads
from regulars.segments.analysis.questions import (
    PRODUCT_ROWS_MAX,
    TREND_WEEKS,
    ProductFigures,
    ProductGroup,
    ProductRow,
    ProductsAnswer,
    ProductsQuestion,
)
from regulars.segments.columns.model import IDENTIFIED_SALES


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
    sums = _sums(lines, FIRST_VALUE + len(values_of(tickets, question.by)))
    compared_sums = None
    if question.comparison is not None:
        compared_sums = _sums(list(reader.read(window_of(question.comparison), question.by)), sums.present.size)
    present = sums.present if compared_sums is None else sums.present | compared_sums.present
    ranks = _rank(sums.net, present, min(question.rows_max, PRODUCT_ROWS_MAX))
    weekly_nets = _weekly_nets(tickets, reader, question, window[1], ranks)
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
    return ProductsAnswer(as_of=as_of, rows=tuple(rows), whole=figures[ranks.rows], groups=ranks.total_groups)


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


def _rank(nets: Array, present: Array, rows_max: int) -> _Ranks:
    """Rank the groups by net, the largest first; the groups without a value come last."""
    groups = FIRST_VALUE + np.flatnonzero(present[FIRST_VALUE:])
    order = _largest(nets[groups], rows_max)
    without_value = [group for group in (UNSET, NO_PRODUCT) if present[group]]
    chosen = [*groups[order].tolist(), *without_value]
    of_group = np.full(nets.size, len(chosen), np.int32)
    of_group[chosen] = np.arange(len(chosen))
    return _Ranks(chosen, of_group, groups.size + len(without_value))


def _largest(values: Array, count: int) -> Array:
    """The indexes of the largest values, the largest first; there may be millions, so not all are sorted."""
    indexes = np.argpartition(-values, count)[:count] if values.size > count else np.arange(values.size)
    return indexes[np.argsort(-values[indexes], kind="stable")]


def _figures(
    ranks: _Ranks, counts: tuple[list[int], list[int]], weekly_nets: Array, sums: _Sums, compared_sums: _Sums | None
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
            tickets=counts[0][row],
            customers=counts[1][row],
            weekly_net_cents=tuple(weeks[row].tolist()),
            compared_net_cents=None if compared_net is None else compared_net[row],
        )
        for row in range(ranks.rows + 1)
    ]


def _count(tickets: Tickets, lines: Sequence[Lines], ranks: _Ranks) -> tuple[list[int], list[int]]:
    """For each row the number of purchases with a line of the row, and of the customers who made them; each list ends
    with the number for all rows together."""
    # A sale may have lines with and without a product, which are in separate batches, so pairs of row and sale are
    # collected per run.
    batches_of_runs: dict[int, list[Lines]] = {}
    for batch in lines:
        batches_of_runs.setdefault(batch.run.meta.id, []).append(batch)

    def pairs_of(batches: Sequence[Lines]) -> DistinctPairs:
        # Returned lines get an additional last row, which is not counted.
        rows = [np.where(batch.is_return, np.int32(ranks.rows), batch.look_up(ranks.of_group)) for batch in batches]
        sales = [batch.sale for batch in batches]
        return distinct_pairs(list(zip(rows, sales, strict=True)), ranks.rows + 1, batches[0].run.size)

    counts, all_tickets = np.zeros(ranks.rows, np.int64), 0
    has_bought = np.zeros(tickets.customer_count, bool)
    customers = []
    for run_id, distinct in zip(batches_of_runs, map_in_threads(pairs_of, batches_of_runs.values()), strict=True):
        run = tickets.cached.sales[run_id]
        row, sale = distinct.of_groups(ranks.rows)
        counts += distinct.counts[: ranks.rows]
        is_sold = np.zeros(run.size, bool)
        is_sold[sale] = True
        all_tickets += int(np.count_nonzero(is_sold))
        if run.meta.kind == IDENTIFIED_SALES:
            customer = run.parts["customer"].take(sale)
            members = tickets.members_of(customer)
            customers.append((row, customer) if members is None else (row[members], customer[members]))
            has_bought[run.parts["customer"][is_sold]] = True
    customer_counts = distinct_pairs(customers, ranks.rows, max(1, tickets.customer_count)).counts
    return [*counts.tolist(), all_tickets], [
        *customer_counts.tolist(),
        int(np.count_nonzero(has_bought & tickets.members)),
    ]


def _weekly_nets(tickets: Tickets, reader: LineReader, question: ProductsQuestion, last: int, ranks: _Ranks) -> Array:
    """The net of each row in each of the weeks that end with the last day."""
    first = last - 7 * TREND_WEEKS + 1

    def nets_by_row_and_week(batch: Lines) -> Summands:
        week = ((batch.run.days(tickets.zone) - first) // 7).take(batch.sale)
        return Summands(batch.look_up(ranks.of_group) * TREND_WEEKS + week, batch.totals)

    values = map_in_threads(nets_by_row_and_week, reader.read((first, last), question.by))
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
