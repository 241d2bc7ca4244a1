"""Sums of tickets by day, week, month or store."""

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
from regulars.segments.columns.model import NO_CUSTOMER, OF_CUSTOMERS

SUMMED = ("amount", "discount", "tax", "units", "lines")


def answer_sales(tickets: Tickets, question: SalesQuestion, as_of: datetime) -> SalesAnswer:
    between = tickets.first_and_last_day()
    if question.by == "store":
        buckets = whole_bucket(question.period, between)
        stores = [UUID(bytes=value) for value in tickets.cached.dictionaries.stores.values]
        sums = _sums(tickets, buckets, len(stores), lambda selection: selection.of("store"))
        rows = [SalesRow(store_id=store, sums=one) for store, one in zip(stores, sums, strict=True) if one]
        rows.sort(key=lambda row: str(row.store_id))
    else:
        buckets = buckets_of(question.period, question.by, between)
        sums = _sums(tickets, buckets, len(buckets), lambda selection: buckets.index_of(selection, tickets.zone))
        firsts = map(date_of, buckets.first.tolist())
        rows = [SalesRow(first=first, sums=one) for first, one in zip(firsts, sums, strict=True) if one]
    whole: dict[Currency, Sums] = {}
    for row in rows:
        for currency, one in row.sums.items():
            whole[currency] = whole.get(currency, Sums()) + one
    return SalesAnswer(as_of=as_of, rows=tuple(rows), whole=whole)


def _sums(
    tickets: Tickets, buckets: Buckets, size: int, group_of: Callable[[SalesSelection], Array]
) -> list[Mapping[Currency, Sums]]:
    """For each group of the sales in the buckets its sums by currency."""
    kinds = 2 * len(tickets.currencies)
    places, identified = [], []
    values: dict[str, list[Summands]] = {part: [] for part in SUMMED}
    for selection in tickets.select(buckets.window):
        place = group_of(selection).astype(np.int64) * kinds + selection.of("kind")
        places.append(place)
        is_of_customers = selection.run.run.kind == OF_CUSTOMERS
        identified.append(place if is_of_customers else place[selection.of("customer") != NO_CUSTOMER])
        for part in SUMMED:
            values[part].append(Summands(place, selection.of(part), selection.run.factor_of(part)))
    shape = size, kinds // 2, 2
    counts, with_customer = (_count(some, size * kinds).reshape(shape).tolist() for some in (places, identified))
    amount, discount, tax, units, lines = (
        sum_groups(values[part], size * kinds).reshape(shape).tolist() for part in SUMMED
    )
    return [
        {
            currency: Sums(
                purchases=counts[at][code][0],
                returns=counts[at][code][1],
                identified=sum(with_customer[at][code]),
                gross_cents=amount[at][code][0],
                returned_cents=-amount[at][code][1],
                discount_cents=discount[at][code][0],
                tax_cents=sum(tax[at][code]),
                units=Decimal(units[at][code][0]) / MILLIONTHS,
                returned_units=Decimal(-units[at][code][1]) / MILLIONTHS,
                lines=lines[at][code][0],
            )
            for code, currency in enumerate(tickets.currencies)
            if any(counts[at][code])
        }
        for at in range(size)
    ]


def _count(places: list[Array], size: int) -> Array:
    counts = np.zeros(size, np.int64)
    for some in places:
        counts += np.bincount(some, minlength=size)
    return counts
