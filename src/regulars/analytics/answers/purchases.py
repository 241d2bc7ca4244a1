"""Finds the purchase days that a question counts, and the first and the last purchase day of each customer."""

from typing import Final

import numpy as np

from regulars.analytics.answers.tickets import Tickets, Window
from regulars.columns.engine.cache import Result
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.purchase_days import PurchaseDays, merge_keys, purchase_days, purchase_keys, unpack
from regulars.columns.engine.sales_runs import ALL_DAYS, SalesRun
from regulars.columns.model import IDENTIFIED_SALES

# Used as the first day of a customer who never bought; it is later than all days.
NEVER: Final = np.iinfo(np.int32).max


def all_purchases(tickets: Tickets) -> PurchaseDays:
    """The purchase days of all customers, including erased customers, at all stores."""
    cached = tickets.cached

    def compute() -> Result:
        days = unpack(_all_keys(tickets))
        # The cache stores up to three arrays; here they are customers, days, and where each customer begins.
        return Result(days.customer, days.day, days.starts)

    customer, day, starts = cached.results.find_or_add(
        ("purchase days", tickets.zone.name, cached.sales_as_of), compute
    )
    if day is None:
        raise AssertionError("purchases have days")
    return PurchaseDays(customer, day, starts)


def _all_keys(tickets: Tickets) -> Array:
    """The keys of all purchase days. The keys of large runs (stored chunks of sales) are cached, since new sales are in
    small runs."""
    cached, zone = tickets.cached, tickets.zone
    large: list[SalesRun] = []
    small: list[SalesRun] = []
    for meta in cached.runs(IDENTIFIED_SALES):
        (large if cached.is_large(meta) else small).append(cached.sales[meta.id])
    key = ("purchase keys", zone.name, *(run.meta.id for run in large))
    keys = cached.results.find_or_add(key, lambda: Result(purchase_keys(large, zone))).holds
    return merge_keys(keys, purchase_keys(small, zone))


def purchases_of(tickets: Tickets, window: Window) -> PurchaseDays:
    """The purchase days of the members at the chosen stores."""
    if tickets.stores is None:
        days = all_purchases(tickets)
        within = days if window == ALL_DAYS else days.where(np.flatnonzero(days.within(window)))
        members = tickets.members_of(within.customer)
        return within if members is None else within.where(members)
    purchases = [
        # The lowest bit of a kind is set for returns.
        selection.where(selection.all_of("kind") & 1 == 0)
        for selection in tickets.mask(window, of_customers=True)
    ]
    return purchase_days([(selection.of("customer"), selection.days(tickets.zone)) for selection in purchases])


def first_days(tickets: Tickets) -> Array:
    """The first purchase day of each customer at any store; NEVER for a customer without a purchase."""

    def compute() -> Result:
        purchases = all_purchases(tickets)
        first = np.full(tickets.customer_count, NEVER, np.int32)
        first[purchases.customer[purchases.starts]] = purchases.day[purchases.starts]
        return Result(first)

    key = ("first purchase", tickets.zone.name, tickets.cached.sales_as_of, tickets.customer_count)
    return tickets.cached.results.find_or_add(key, compute).holds


def last_days(purchases: PurchaseDays, size: int) -> Array:
    """The last purchase day of each customer; the smallest 32-bit integer, a day before all days, for a customer
    without a purchase."""
    last = np.full(size, np.iinfo(np.int32).min, np.int32)
    last[purchases.customer[purchases.starts]] = purchases.day[_ends(purchases)]
    return last


def count_days(purchases: PurchaseDays, window: Window, size: int) -> Array:
    """How many days of each customer are in the window."""
    so_far = np.cumsum(purchases.within(window), dtype=np.int32)[_ends(purchases)]
    counts = np.zeros(size, np.int32)
    counts[purchases.customer[purchases.starts]] = np.diff(so_far, prepend=np.int32(0))
    return counts


def _ends(purchases: PurchaseDays) -> Array:
    """The index of the last day of each customer."""
    return np.append(purchases.starts, purchases.day.size)[1:] - 1
