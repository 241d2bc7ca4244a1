"""Answers the question about sales: sums of tickets by day, week, month or store."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import numpy as np

from regulars.sales.model import Currency
from regulars.sales.totals.model import Sums
from regulars.segments.analysis.engine.answers.tickets import (
    Buckets,
    Tickets,
    buckets_of,
    date_of,
    whole_bucket,
)
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import Summands, sum_groups
from regulars.segments.analysis.engine.sales_runs import SalesSelection
from regulars.segments.analysis.questions import MILLIONTHS, SalesAnswer, SalesQuestion, SalesRow
from regulars.segments.columns.model import IDENTIFIED_SALES, NO_CUSTOMER

SUMMED_PARTS = ("amount", "discount", "tax", "units", "lines")


def answer_sales(tickets: Tickets, question: SalesQuestion, as_of: datetime) -> SalesAnswer:
    sales_window = tickets.first_and_last_day()
    if question.by == "store":
        buckets = whole_bucket(question.period, sales_window)
        stores = [UUID(bytes=value) for value in tickets.cached.dictionaries.stores.values]
        sums = _sums(tickets, buckets, len(stores), lambda selection: selection.of("store"))
        rows = [
            SalesRow(store_id=store, sums=store_sums)
            for store, store_sums in zip(stores, sums, strict=True)
            if store_sums
        ]
        rows.sort(key=lambda row: str(row.store_id))
    else:
        buckets = buckets_of(question.period, question.by, sales_window)
        sums = _sums(tickets, buckets, len(buckets), lambda selection: buckets.index_of(selection, tickets.zone))
        firsts = map(date_of, buckets.first.tolist())
        rows = [
            SalesRow(first=first, sums=bucket_sums)
            for first, bucket_sums in zip(firsts, sums, strict=True)
            if bucket_sums
        ]
    whole: dict[Currency, Sums] = {}
    for row in rows:
        for currency, sums_of_row in row.sums.items():
            whole[currency] = whole.get(currency, Sums()) + sums_of_row
    return SalesAnswer(as_of=as_of, rows=tuple(rows), whole=whole)


def _sums(
    tickets: Tickets, buckets: Buckets, size: int, group_of: Callable[[SalesSelection], Array]
) -> list[Mapping[Currency, Sums]]:
    """The sums of each group of sales, by currency.

    `kind` is twice the code of the currency, plus 1 for a return, so sums are reshaped to group, currency and return.
    """
    kinds = 2 * len(tickets.currencies)
    groups, identified = [], []
    values: dict[str, list[Summands]] = {part: [] for part in SUMMED_PARTS}
    for selection in tickets.select(buckets.window):
        group = group_of(selection).astype(np.int64) * kinds + selection.of("kind")
        groups.append(group)
        is_identified = selection.run.meta.kind == IDENTIFIED_SALES
        identified.append(group if is_identified else group[selection.of("customer") != NO_CUSTOMER])
        for part in SUMMED_PARTS:
            values[part].append(Summands(group, selection.of(part), selection.run.factor_of(part)))
    shape = size, kinds // 2, 2
    counts, with_customer = (_count(indexes, size * kinds).reshape(shape).tolist() for indexes in (groups, identified))
    amount, discount, tax, units, lines = (
        sum_groups(values[part], size * kinds).reshape(shape).tolist() for part in SUMMED_PARTS
    )
    return [
        {
            currency: Sums(
                purchases=counts[index][code][0],
                returns=counts[index][code][1],
                identified=sum(with_customer[index][code]),
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
        for index in range(size)
    ]


def _count(batches: list[Array], size: int) -> Array:
    counts = np.zeros(size, np.int64)
    for batch in batches:
        counts += np.bincount(batch, minlength=size)
    return counts
