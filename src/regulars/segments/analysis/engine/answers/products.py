"""Products and categories: net, units, returns, tickets and customers of the largest groups, and of the others."""

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
    LineReader,
    Lines,
    count_distinct,
    values_of,
)
from regulars.segments.analysis.engine.answers.tickets import Tickets, window_of
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import sum_groups
from regulars.segments.analysis.engine.sales_runs import IDS, NAMES
from regulars.segments.analysis.questions import (
    PRODUCT_ROWS_MAX,
    SPARK_WEEKS,
    ProductFigures,
    ProductGroup,
    ProductRow,
    ProductsAnswer,
    ProductsQuestion,
)


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
    size = FIRST_VALUE + len(values_of(tickets, question.by))
    nets = _nets(lines, size)
    present = _present(lines, size)
    before = None
    if question.comparison is not None:
        earlier = list(reader.read(window_of(question.comparison), question.by))
        before = _nets(earlier, size)
        present |= _present(earlier, size)
    ranks = _rank(nets, present, min(question.rows_max, PRODUCT_ROWS_MAX))
    tables = _Tables(tickets, lines, ranks)
    sparks = _sparks(tickets, reader, question, window[1], ranks)
    compared = None if before is None else sum_groups([(ranks.of_group, before)], ranks.rows)
    figures = [
        tables.figures(row, sparks[row], None if compared is None else int(compared[row])) for row in range(ranks.rows)
    ]
    names = _names(tickets, ranks.groups) if question.by.kind == "product" else {}
    rows = [
        ProductRow(_group(tickets, question, group), figures[row], names.get(group))
        for row, group in enumerate(ranks.groups)
    ]
    if ranks.all > len(ranks.groups):
        rows.append(ProductRow(ProductGroup(question.by, "others"), figures[-1]))
    return ProductsAnswer(
        as_of=as_of,
        rows=tuple(rows),
        whole=tables.whole(figures),
        groups=ranks.all,
    )


def _nets(lines: Sequence[Lines], size: int) -> Array:
    return sum_groups([(some.group, some.totals) for some in lines], size)


def _present(lines: Sequence[Lines], size: int) -> Array:
    present = np.zeros(size, bool)
    for some in lines:
        present[some.group] = True
    return present


def _rank(nets: Array, present: Array, rows_max: int) -> _Ranks:
    """The largest net first; groups without a value come after them."""
    groups = FIRST_VALUE + np.flatnonzero(present[FIRST_VALUE:])
    order = np.argsort(-nets[groups], kind="stable")[:rows_max]
    without = [group for group in (UNSET, NO_PRODUCT) if present[group]]
    chosen = [*groups[order].tolist(), *without]
    of_group = np.full(nets.size, len(chosen), np.int64)
    of_group[chosen] = np.arange(len(chosen))
    return _Ranks(chosen, of_group, groups.size + len(without))


class _Tables:
    """The figures of each row."""

    def __init__(self, tickets: Tickets, lines: Sequence[Lines], ranks: _Ranks) -> None:
        rows = ranks.rows
        placed = [(some, ranks.of_group[some.group], some.is_return) for some in lines]
        self._net = sum_groups([(row, some.totals) for some, row, _ in placed], rows)
        self._sold, returned = (
            sum_groups(
                [(row[is_return == wanted], some.millionths[is_return == wanted]) for some, row, is_return in placed],
                rows,
            )
            for wanted in (False, True)
        )
        self._returned = -returned
        bought = [(some.where(~is_return), row[~is_return]) for some, row, is_return in placed]
        self._tickets, self._customers = _count(tickets, bought, rows)
        # Tickets and customers of the whole: all lines as one group.
        together = [(some, np.zeros(row.size, np.int64)) for some, row in bought]
        self._of_all = [int(counts[0]) for counts in _count(tickets, together, 1)]

    def figures(self, row: int, spark: Sequence[int], compared: int | None) -> ProductFigures:
        return ProductFigures(
            net_cents=int(self._net[row]),
            sold_millionths=int(self._sold[row]),
            returned_millionths=int(self._returned[row]),
            tickets=int(self._tickets[row]),
            customers=int(self._customers[row]),
            spark_cents=tuple(spark),
            compared_net_cents=compared,
        )

    def whole(self, rows: Sequence[ProductFigures]) -> ProductFigures:
        compared = [row.compared_net_cents for row in rows if row.compared_net_cents is not None]
        return ProductFigures(
            net_cents=sum(row.net_cents for row in rows),
            sold_millionths=sum(row.sold_millionths for row in rows),
            returned_millionths=sum(row.returned_millionths for row in rows),
            tickets=self._of_all[0],
            customers=self._of_all[1],
            spark_cents=tuple(sum(row.spark_cents[week] for row in rows) for week in range(SPARK_WEEKS)),
            compared_net_cents=sum(compared) if compared else None,
        )


def _count(tickets: Tickets, bought: Sequence[tuple[Lines, Array]], rows: int) -> tuple[Array, Array]:
    """Purchases with a line of each row, and customers who made one."""
    counts = np.zeros(rows, np.int64)
    # The lines with a product and those without one are of the same sales.
    of_runs: dict[int, list[tuple[Array, Array]]] = {}
    of_customers = []
    for some, row in bought:
        of_runs.setdefault(some.run.run.id, []).append((row, some.sale))
        customer = some.of_sale("customer")
        is_member = (customer >= 0) & tickets.members[np.maximum(customer, 0)] if tickets.size else customer >= 0
        of_customers.append((row[is_member], customer[is_member]))
    for run_id, pairs in of_runs.items():
        counts += count_distinct(pairs, rows, tickets.cached.sales[run_id].size)
    return counts, count_distinct(of_customers, rows, tickets.size)


def _sparks(
    tickets: Tickets, reader: LineReader, question: ProductsQuestion, last: int, ranks: _Ranks
) -> list[list[int]]:
    """The net of each row in each of the weeks that end with the last day."""
    first = last - 7 * SPARK_WEEKS + 1
    values = []
    for some in reader.read((first, last), question.by):
        week = (some.run.days(tickets.zone)[some.sale] - first) // 7
        values.append((ranks.of_group[some.group] * SPARK_WEEKS + week, some.totals))
    sparks: list[list[int]] = sum_groups(values, ranks.rows * SPARK_WEEKS).reshape(-1, SPARK_WEEKS).tolist()
    return sparks


def _group(tickets: Tickets, question: ProductsQuestion, group: int) -> ProductGroup:
    if group < FIRST_VALUE:
        return ProductGroup(question.by, "no_product" if group == NO_PRODUCT else "unset")
    value = values_of(tickets, question.by).values[group - FIRST_VALUE]
    return ProductGroup(question.by, "value", STORE.encode(UUID(bytes=value)) if question.by.kind == "store" else value)


def _names(tickets: Tickets, groups: Sequence[int]) -> dict[int, str]:
    return {
        code + FIRST_VALUE: name for code, name in names_of(tickets, [group - FIRST_VALUE for group in groups]).items()
    }


def names_of(tickets: Tickets, codes: Sequence[int]) -> dict[int, str]:
    """The names under which products with these codes were last sold, of those that have one."""
    known = tickets.cached.dictionaries.product_values(NAMES).dictionary.values
    wanted = np.array([code for code in codes if code >= 0], np.int64)
    names: dict[int, str] = {}
    runs = [tickets.cached.sales[run.id] for run in tickets.runs()]
    for run in sorted(runs, key=lambda one: one.run.last_s or 0):
        if IDS not in run.parts or NAMES not in run.parts:
            continue
        products = np.flatnonzero(np.isin(run.parts[IDS], wanted) & (run.parts[NAMES] >= 0))
        # The sales of a product ascend, so the last line is of the last sale.
        last_sale = run.parts["sale"][run.parts["starts"][products + 1] - 1]
        products = products[np.argsort(last_sale, kind="stable")]
        names |= {
            code: known[name]
            for code, name in zip(run.parts[IDS][products].tolist(), run.parts[NAMES][products].tolist(), strict=True)
        }
    return names
