"""Selects the sales that a question counts, by period, stores and members, and divides periods into days, weeks or
months (buckets). Sales are in runs, which are immutable stored chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final
from uuid import UUID

import numpy as np

from regulars.columns.engine.cache import CachedColumns
from regulars.columns.engine.calendar import EPOCH_ORDINAL, Zone, number_of
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.evaluation import Evaluation
from regulars.columns.engine.sales_conditions import overlaps
from regulars.columns.engine.sales_runs import SalesSelection, select_window
from regulars.columns.engine.threads import map_in_threads
from regulars.columns.model import ANONYMOUS_SALES, IDENTIFIED_SALES, Run
from regulars.columns.protocol import SegmentQuery
from regulars.columns.questions import Bucket, Period
from regulars.conditions import tree
from regulars.sales.model import Currency

# The largest number of days, weeks or months in one answer.
BUCKETS_MAX: Final = 4_000
# From Monday to 1 January 1970, a Thursday.
_MONDAY_TO_EPOCH_DAYS: Final = 3

# The first and the last day, counted from 1970.
Window = tuple[int, int]


class RefusedQuestion(Exception):
    """The question cannot be answered; the message says why."""


class Tickets:
    """The sales of the members of a query at the chosen stores; all sales if the query has no condition."""

    def __init__(
        self, cached: CachedColumns, query: SegmentQuery, zone: Zone, store_ids: Sequence[UUID] | None
    ) -> None:
        self.cached = cached
        self.zone = zone
        self.today = number_of(query.today)
        # A mask of the members who are not erased.
        self.members = Evaluation(cached, query, zone).members()
        self._are_all_members = bool(self.members.all())
        self.counts_all_sales = query.match == tree.All()
        stores = cached.dictionaries.stores
        self.stores = None if store_ids is None else stores.mask(store_id.bytes for store_id in store_ids)

    @property
    def customer_count(self) -> int:
        return self.cached.size

    @property
    def currencies(self) -> list[Currency]:
        return list(self.cached.dictionaries.currencies.values)

    def select(self, window: Window, *, of_customers: bool = False) -> list[SalesSelection]:
        """The sales of `mask`, selected by indexes instead of booleans, which is twice as fast if several parts are
        read."""

        def with_indexes(selection: SalesSelection) -> SalesSelection:
            row_filter = selection.row_filter
            return selection if row_filter is None else selection._replace(row_filter=np.flatnonzero(row_filter))

        return map_in_threads(with_indexes, self.mask(window, of_customers=of_customers))

    def mask(self, window: Window, *, of_customers: bool = False) -> list[SalesSelection]:
        """Select all counted sales of a window, or only those of customers who are not erased; a selection for each
        run that has some."""
        is_members_only = (of_customers or not self.counts_all_sales) and not self._are_all_members

        def select_run(meta: Run) -> SalesSelection:
            selection = select_window(self.cached.sales[meta.id], window, self.zone)
            if self.stores is not None:
                selection = selection.where(self.stores[selection.all_of("store")])
            if is_members_only:
                selection = selection.where(self.members.take(selection.all_of("customer")))
            return selection

        runs = [it for it in self.runs(of_customers=of_customers) if overlaps(it.first_s, it.last_s, window)]
        return [selection for selection in map_in_threads(select_run, runs) if selection.first < selection.last]

    def members_of(self, customers: Array) -> Array | None:
        """A mask of these customers who are members; None if all are."""
        return None if self._are_all_members else self.members.take(customers)

    def kinds_of(self, currency: Currency) -> tuple[int, int]:
        """The kinds of purchases and of returns in a currency; -1, which no sale has, if no sale has the currency.

        The kind of a sale is twice the code of its currency, plus 1 for a return.
        """
        code = self.cached.dictionaries.currencies.find(currency)
        return (-1, -1) if code < 0 else (2 * code, 2 * code + 1)

    def first_and_last_day(self, *, of_customers: bool = False) -> Window:
        """The days of the first and of the last sale; without sales the last day is before the first."""
        bounds = [
            (int(days.min()), int(days.max()))
            for meta in self.runs(of_customers=of_customers)
            if (days := self.cached.sales[meta.id].days(self.zone)).size
        ]
        return (min(first for first, _ in bounds), max(last for _, last in bounds)) if bounds else (0, -1)

    def runs(self, *, of_customers: bool = False) -> list[Run]:
        """The runs that have counted sales, or those with sales of customers."""
        is_identified = of_customers or not self.counts_all_sales
        return (
            self.cached.runs(IDENTIFIED_SALES) if is_identified else self.cached.runs(IDENTIFIED_SALES, ANONYMOUS_SALES)
        )


@dataclass(frozen=True, slots=True)
class Buckets:
    """Consecutive days, weeks or months of a period, by their first and last days inside it."""

    first: Array
    last: Array
    # The first day of the first bucket, and for each following day the index of its bucket.
    since: int
    of_day: Array

    def __len__(self) -> int:
        return self.first.size

    @property
    def window(self) -> Window:
        return self.since, self.since + self.of_day.size - 1

    def index_of(self, selection: SalesSelection, zone: Zone) -> Array:
        """The bucket of each sale of a selection inside the window. If the days of the run ascend, a search for the
        bounds of the buckets replaces a lookup for each day."""
        days = selection.run.days(zone)[selection.first : selection.last]
        if selection.run.is_in_order:
            edges = np.searchsorted(days, np.append(self.first, self.last[-1:] + 1).astype(days.dtype))
            edges[0], edges[-1] = 0, days.size
            buckets = np.repeat(np.arange(len(self), dtype=self.of_day.dtype), np.diff(edges))
        else:
            buckets = self.index(days)
        return buckets if selection.row_filter is None else buckets[selection.row_filter]

    def index(self, days: Array) -> Array:
        # Days outside the window, of sales that are not counted, get the nearest bucket.
        indexes: Array = self.of_day.take(days - self.since, mode="clip")
        return indexes


def window_of(period: Period) -> Window:
    return number_of(period.first), number_of(period.last)


def whole_bucket(period: Period, sales_window: Window) -> Buckets:
    """The whole period as one bucket; `sales_window` has the days of the first and the last sale."""
    window = window_of(period)
    first, last = max(window[0], sales_window[0]), min(window[1], sales_window[1])
    of_day = np.zeros(max(0, last - first + 1), np.int16)
    return Buckets(np.array([window[0]]), np.array([window[1]]), first, of_day)


def adjacent_buckets(parts: Sequence[Period]) -> Buckets:
    """Buckets of these days, each part beginning after the end of the one before."""
    first, last = np.array([window_of(part) for part in parts]).T
    return Buckets(first, last, int(first[0]), np.repeat(np.arange(first.size, dtype=np.int16), last - first + 1))


def buckets_of(period: Period, by: Bucket, sales_window: Window) -> Buckets:
    """The buckets of a period, without those before the first sale and after the last sale."""
    window = window_of(period)
    first, last = max(window[0], sales_window[0]), min(window[1], sales_window[1])
    days = np.arange(first, max(first, last + 1))
    starts, ends = _bounds(days, by)
    firsts, indexes, of_day = np.unique(starts, return_index=True, return_inverse=True)
    if firsts.size > BUCKETS_MAX:
        raise RefusedQuestion(f"The period has more than {BUCKETS_MAX:,} rows; choose longer ones or fewer days.")
    return Buckets(np.maximum(firsts, window[0]), np.minimum(ends[indexes], window[1]), first, of_day.astype(np.int16))


def _bounds(days: Array, by: Bucket) -> tuple[Array, Array]:
    """The first and the last day of the bucket of each day."""
    match by:
        case "day":
            return days, days
        case "week":
            mondays = days - (days + _MONDAY_TO_EPOCH_DAYS) % 7
            return mondays, mondays + 6
        case "month":
            months = months_of(days)
            return first_days_of(months), first_days_of(months + 1) - 1


def months_of(days: Array) -> Array:
    """The number of the month of each day, counted from January 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def first_days_of(months: Array) -> Array:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def first_day_of(month: int) -> int:
    return int(first_days_of(np.array(month)))


def date_of(day: int) -> date:
    return date.fromordinal(int(day) + EPOCH_ORDINAL)


def money_of(currencies: Sequence[Currency], cents: Array) -> Mapping[Currency, int]:
    """Amounts by currency; amounts of 0 are omitted."""
    return {currency: amount for currency, amount in zip(currencies, cents.tolist(), strict=True) if amount}
