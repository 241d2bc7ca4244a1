"""Answers the question which other products are on the same tickets as the chosen products. Sales are read run by run;
a run is a stored chunk of sales."""

from datetime import datetime

import numpy as np

from regulars.analytics.answers.product_lines import LineReader
from regulars.analytics.answers.products import names_of
from regulars.analytics.answers.tickets import Tickets, window_of
from regulars.columns.engine.purchase_days import begins_of
from regulars.columns.engine.sales_runs import PRODUCT_IDS
from regulars.columns.questions import PRODUCT_ROWS_MAX, BasketAnswer, BasketQuestion, BasketRow, ProductKey


def answer_basket(tickets: Tickets, question: BasketQuestion, as_of: datetime) -> BasketAnswer:
    product_ids = tickets.cached.dictionaries.product_values(PRODUCT_IDS).dictionary.values
    reader = LineReader(tickets, question.currency, question.filters)
    counts = np.zeros(len(product_ids), np.int64)
    ticket_count = 0
    # For each run, which of its sales have a chosen product.
    sales_of_runs: dict[int, np.ndarray] = {}
    for lines in reader.read(window_of(question.period), ProductKey()):
        sales = lines.sale[~lines.is_return]
        sales_of_runs.setdefault(lines.run.meta.id, np.zeros(lines.run.size, bool))[sales] = True
    for run_id, has_line in sales_of_runs.items():
        run = tickets.cached.sales[run_id]
        ticket_count += int(np.count_nonzero(has_line))
        is_other = (run.parts[PRODUCT_IDS] >= 0) & ~reader.match_products(run)
        code = np.repeat(np.where(is_other, run.parts[PRODUCT_IDS], -1), np.diff(run.parts["starts"])).astype(np.int64)
        sale = run.parts["sale"]
        # Each pair of a product and a sale counts once.
        is_counted = has_line[sale] & (code >= 0)
        pairs = np.sort(code[is_counted] * run.size + sale[is_counted])
        counts += np.bincount(pairs[begins_of(pairs)] // max(1, run.size), minlength=counts.size)
    order = np.argsort(-counts, kind="stable")[: min(question.rows_max, PRODUCT_ROWS_MAX)]
    largest = order[counts[order] > 0].tolist()
    names = names_of(tickets, largest, [tickets.cached.sales[run_id] for run_id in sales_of_runs])
    return BasketAnswer(
        as_of=as_of,
        tickets=ticket_count,
        rows=tuple(BasketRow(product_ids[code], int(counts[code]), names.get(code)) for code in largest),
    )
