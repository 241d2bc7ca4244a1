"""Products and categories: net, units, returns, tickets and customers of the largest groups, and of the others."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np

from regulars.kit.ids import STORE
from regulars.segments.analysis.engine.answers.product_lines import (
    FIRST_VALUE,
    NO_PRODUCT,
    UNSET,
    LineReader,
    Lines,
    distinct_pairs,
    values_of,
)
from regulars.segments.analysis.engine.answers.tickets import Tickets, window_of
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import Summands, sum_groups
from regulars.segments.analysis.engine.sales_runs import IDS, NAMES, SalesRun
from regulars.segments.analysis.questions import (
    PRODUCT_ROWS_MAX,
    SPARK_WEEKS,
    ProductFigures,
    ProductGroup,
    ProductRow,
    ProductsAnswer,
    ProductsQuestion,
)
from regulars.segments.columns.model import OF_CUSTOMERS


class _Ranks(NamedTuple):
    """The groups that have a row of their own, and the row of each group; the last row is of all others."""

    groups: Sequence[int]
    of_group: Array
    all: int

    @property
    def rows(self) -> int:
        return len(self.groups) + 1


def answer_products(tickets: Tickets, question: ProductsQuestion, as_of: datetime) -> ProductsAnswer:
    reader = LineReader(tickets, question.currency, question.inside)
    window = window_of(question.period)
    lines = list(reader.read(window, question.by))
    sums = _sums(lines, FIRST_VALUE + len(values_of(tickets, question.by)))
    before = None
    if question.comparison is not None:
        before = _sums(reader.read(window_of(question.comparison), question.by), sums.present.size)
    present = sums.present if before is None else sums.present | before.present
    ranks = _rank(sums.net, present, min(question.rows_max, PRODUCT_ROWS_MAX))
    sparks = _sparks(tickets, reader, question, window[1], ranks)
    counts = _count(tickets, lines, ranks)
    figures = _figures(ranks, counts, sparks, sums, before)
    # A product of the comparison only may have its name in any run.
    named = {some.run.run.id for some in lines} if before is None else {run.id for run in tickets.runs()}
    runs = [tickets.cached.sales[run_id] for run_id in named]
    names = _names(tickets, ranks.groups, runs) if question.by.kind == "product" else {}
    rows = [
        ProductRow(_group(tickets, question, group), figures[row], names.get(group))
        for row, group in enumerate(ranks.groups)
    ]
    if ranks.all > len(ranks.groups):
        rows.append(ProductRow(ProductGroup(question.by, "others"), figures[ranks.rows - 1]))
    return ProductsAnswer(as_of=as_of, rows=tuple(rows), whole=figures[ranks.rows], groups=ranks.all)


class _Sums(NamedTuple):
    """Of each group."""

    net: Array
    sold: Array
    returned: Array
    present: Array

    def of_rows(self, ranks: _Ranks) -> tuple[list[int], list[int], list[int]]:
        """Of each row, and of all together."""
        net, sold, returned = (
            sum_groups([Summands(ranks.of_group, values)], ranks.rows).tolist()
            for values in (self.net, self.sold, self.returned)
        )
        return [*net, sum(net)], [*sold, sum(sold)], [*returned, sum(returned)]


def _sums(lines: Iterable[Lines], size: int) -> _Sums:
    totals, units, returned = [], [], []
    present = np.zeros(size, bool)
    for some in lines:
        totals.append(some.summands(some.totals))
        units.append(some.summands(some.units, some.factor))
        returned.append(some.summands(some.units * some.is_return, some.factor))
        present[some.groups] = True
    back = sum_groups(returned, size)
    return _Sums(sum_groups(totals, size), sum_groups(units, size) - back, -back, present)


def _rank(nets: Array, present: Array, rows_max: int) -> _Ranks:
    """The largest net first; groups without a value come after them."""
    groups = FIRST_VALUE + np.flatnonzero(present[FIRST_VALUE:])
    order = _largest(nets[groups], rows_max)
    without = [group for group in (UNSET, NO_PRODUCT) if present[group]]
    chosen = [*groups[order].tolist(), *without]
    of_group = np.full(nets.size, len(chosen), np.int32)
    of_group[chosen] = np.arange(len(chosen))
    return _Ranks(chosen, of_group, groups.size + len(without))


def _largest(values: Array, count: int) -> Array:
    """The indexes of the largest values, the largest first; there may be millions, so not all are sorted."""
    some = np.argpartition(-values, count)[:count] if values.size > count else np.arange(values.size)
    return some[np.argsort(-values[some], kind="stable")]


def _figures(
    ranks: _Ranks, counts: tuple[list[int], list[int]], sparks: Array, sums: _Sums, before: _Sums | None
) -> list[ProductFigures]:
    """Of each row, and at last of all together."""
    net, sold, returned = sums.of_rows(ranks)
    compared = None if before is None else before.of_rows(ranks)[0]
    weeks = np.vstack((sparks, sparks.sum(axis=0)))
    return [
        ProductFigures(
            net_cents=net[row],
            sold_millionths=sold[row],
            returned_millionths=returned[row],
            tickets=counts[0][row],
            customers=counts[1][row],
            spark_cents=tuple(weeks[row].tolist()),
            compared_net_cents=None if compared is None else compared[row],
        )
        for row in range(ranks.rows + 1)
    ]


def _count(tickets: Tickets, lines: Sequence[Lines], ranks: _Ranks) -> tuple[list[int], list[int]]:
    """Purchases with a line of each row, and customers who made one; and both of all rows together."""
    # The lines with a product and those without one are of the same sales. Returned lines are in a row after all.
    of_runs: dict[int, list[tuple[Array, Array]]] = {}
    for some in lines:
        row = np.where(some.is_return, np.int32(ranks.rows), some.look_up(ranks.of_group))
        of_runs.setdefault(some.run.run.id, []).append((row, some.sale))
    counts, all_tickets = np.zeros(ranks.rows, np.int64), 0
    has_bought = np.zeros(tickets.size, bool)
    customers = []
    for run_id, pairs in of_runs.items():
        run = tickets.cached.sales[run_id]
        distinct = distinct_pairs(pairs, ranks.rows + 1, run.size)
        row, sale = distinct.of_groups(ranks.rows)
        counts += distinct.counts[: ranks.rows]
        is_sold = np.zeros(run.size, bool)
        is_sold[sale] = True
        all_tickets += int(np.count_nonzero(is_sold))
        if run.run.kind == OF_CUSTOMERS:
            customer = run.parts["customer"].take(sale)
            members = tickets.members_of(customer)
            customers.append((row, customer) if members is None else (row[members], customer[members]))
            has_bought[run.parts["customer"][is_sold]] = True
    of_customers = distinct_pairs(customers, ranks.rows, max(1, tickets.size)).counts
    return [*counts.tolist(), all_tickets], [
        *of_customers.tolist(),
        int(np.count_nonzero(has_bought & tickets.members)),
    ]


def _sparks(tickets: Tickets, reader: LineReader, question: ProductsQuestion, last: int, ranks: _Ranks) -> Array:
    """The net of each row in each of the weeks that end with the last day."""
    first = last - 7 * SPARK_WEEKS + 1
    values = []
    for some in reader.read((first, last), question.by):
        week = ((some.run.days(tickets.zone) - first) // 7).take(some.sale)
        values.append(Summands(some.look_up(ranks.of_group) * SPARK_WEEKS + week, some.totals))
    return sum_groups(values, ranks.rows * SPARK_WEEKS).reshape(-1, SPARK_WEEKS)


def _group(tickets: Tickets, question: ProductsQuestion, group: int) -> ProductGroup:
    if group < FIRST_VALUE:
        return ProductGroup(question.by, "no_product" if group == NO_PRODUCT else "unset")
    value = values_of(tickets, question.by).values[group - FIRST_VALUE]
    return ProductGroup(question.by, "value", STORE.encode(UUID(bytes=value)) if question.by.kind == "store" else value)


def _names(tickets: Tickets, groups: Sequence[int], runs: Sequence[SalesRun]) -> dict[int, str]:
    codes = [group - FIRST_VALUE for group in groups]
    return {code + FIRST_VALUE: name for code, name in names_of(tickets, codes, runs).items()}


def names_of(tickets: Tickets, codes: Sequence[int], runs: Sequence[SalesRun]) -> dict[int, str]:
    """The names under which products with these codes were last sold in these runs, of those that have one."""
    known = tickets.cached.dictionaries.product_values(NAMES).dictionary.values
    wanted = np.array([code for code in codes if code >= 0], np.int64)
    names: dict[int, str] = {}
    for run in sorted(runs, key=lambda one: one.run.last_s or 0):
        products = np.flatnonzero(np.isin(run.parts[IDS], wanted) & (run.parts[NAMES] >= 0))
        # The sales of a product ascend, so the last line is of the last sale.
        last_sale = run.parts["sale"][run.parts["starts"][products + 1] - 1]
        products = products[np.argsort(last_sale, kind="stable")]
        names |= {
            code: known[name]
            for code, name in zip(run.parts[IDS][products].tolist(), run.parts[NAMES][products].tolist(), strict=True)
        }
    return names
