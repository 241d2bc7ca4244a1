"""Answers the question about sales: sums of tickets by day, week, month or store."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, NamedTuple
from uuid import UUID

import numpy as np

from regulars.analytics.answers.tickets import Buckets, Tickets, buckets_of, date_of, whole_bucket
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.numbers import Summands, sum_groups
from regulars.columns.engine.sales_runs import SalesSelection
from regulars.columns.engine.threads import map_in_threads
from regulars.columns.model import IDENTIFIED_SALES, NO_CUSTOMER
from regulars.columns.questions import MILLIONTHS, Bucket, Period, SalesAnswer, SalesQuestion, SalesRow
from regulars.sales.model import Currency
from regulars.sales.totals.model import Sums

SUMMED_PARTS = ("amount", "discount", "tax", "units", "lines")


def answer_sales(tickets: Tickets, question: SalesQuestion, as_of: datetime) -> SalesAnswer:
    rows = _rows(tickets, question.by, question.period)
    compared = () if question.comparison is None else _rows(tickets, question.by, question.comparison)
    whole: dict[Currency, Sums] = {}
    for row in rows:
        for currency, sums_of_row in row.sums.items():
            whole[currency] = whole.get(currency, Sums()) + sums_of_row
    return SalesAnswer(as_of=as_of, rows=tuple(rows), whole=whole, compared=tuple(compared))


def _rows(tickets: Tickets, by: Bucket | Literal["store"], period: Period) -> list[SalesRow]:
    sales_window = tickets.first_and_last_day()
    if by == "store":
        buckets = whole_bucket(period, sales_window)
        stores = [UUID(bytes=value) for value in tickets.cached.dictionaries.stores.values]
        sums = _sums(tickets, buckets, len(stores), lambda selection: selection.of("store"))
        rows = [
            SalesRow(store_id=store, sums=store_sums)
            for store, store_sums in zip(stores, sums, strict=True)
            if store_sums
        ]
        return sorted(rows, key=lambda row: str(row.store_id))
    buckets = buckets_of(period, by, sales_window)
    sums = _sums(tickets, buckets, len(buckets), lambda selection: buckets.index_of(selection, tickets.zone))
    firsts = map(date_of, buckets.first.tolist())
    return [
        SalesRow(first=first, sums=bucket_sums) for first, bucket_sums in zip(firsts, sums, strict=True) if bucket_sums
    ]


class _Batch(NamedTuple):
    """The group of each ticket of a run, the groups of those with a customer, and the values of each summed part."""

    groups: Array
    identified: Array
    summands: Sequence[Summands]


def _sums(
    tickets: Tickets, buckets: Buckets, size: int, group_of: Callable[[SalesSelection], Array]
) -> list[Mapping[Currency, Sums]]:
    """The sums of each group of sales, by currency.

    `kind` is twice the code of the currency, plus 1 for a return, so sums are reshaped to group, currency and return.
    """
    kinds = 2 * len(tickets.currencies)

    def read(selection: SalesSelection) -> _Batch:
        run = selection.run
        groups = group_of(selection).astype(np.int64) * kinds + selection.of("kind")
        is_identified = run.meta.kind == IDENTIFIED_SALES
        return _Batch(
            groups,
            groups if is_identified else groups[selection.of("customer") != NO_CUSTOMER],
            [Summands(groups, selection.of(part), run.factor_of(part)) for part in SUMMED_PARTS],
        )

    def count(groups: Sequence[Array]) -> Array:
        counts = map_in_threads(lambda it: np.bincount(it, minlength=size * kinds), groups)
        return sum(counts, np.zeros(size * kinds, np.int64))

    batches = map_in_threads(read, tickets.select(buckets.window))
    shape = size, kinds // 2, 2
    counts = count([batch.groups for batch in batches]).reshape(shape).tolist()
    with_customer = count([batch.identified for batch in batches]).reshape(shape).tolist()
    amount, discount, tax, units, lines = (
        sum_groups([batch.summands[part] for batch in batches], size * kinds).reshape(shape).tolist()
        for part in range(len(SUMMED_PARTS))
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
