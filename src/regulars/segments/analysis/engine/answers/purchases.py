"""The purchase days that a question counts, and the first and the last one of each customer."""

from typing import Final

import numpy as np

from regulars.segments.analysis.engine.answers.tickets import Tickets, Window
from regulars.segments.analysis.engine.cache import Result
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.purchase_days import PurchaseDays, purchase_days, purchase_days_of
from regulars.segments.columns.model import OF_CUSTOMERS

# After all days: the first day of a customer who never bought.
NEVER: Final = np.iinfo(np.int32).max


def all_purchases(tickets: Tickets) -> PurchaseDays:
    """Of all customers and stores, also of erased customers."""
    cached = tickets.cached
    key = ("purchase days", tickets.zone.name, cached.sales_as_of)
    known = cached.results.find(key)
    if known is None:
        days = purchase_days_of([cached.sales[run.id] for run in cached.runs(OF_CUSTOMERS)], tickets.zone)
        known = cached.results.add(key, Result(days.customer, days.day))
    if known.unknown is None:
        raise AssertionError("purchases have days")
    return PurchaseDays(known.holds, known.unknown)


def purchases_of(tickets: Tickets, window: Window) -> PurchaseDays:
    """Of the members at the chosen stores."""
    if tickets.stores is None:
        days = all_purchases(tickets)
        some = np.flatnonzero(days.within(window))
        members = tickets.members_of(days.customer[some])
        return days.where(some if members is None else some[members])
    purchases = [
        selection.where(selection.all_of("kind") & 1 == 0) for selection in tickets.mask(window, of_customers=True)
    ]
    return purchase_days([(selection.of("customer"), selection.days(tickets.zone)) for selection in purchases])


def first_days(tickets: Tickets) -> Array:
    """The first purchase day of each customer at any store; NEVER without one."""
    key = ("first purchase", tickets.zone.name, tickets.cached.sales_as_of, tickets.size)
    known = tickets.cached.results.find(key)
    if known is None:
        purchases = all_purchases(tickets)
        first = np.full(tickets.size, NEVER, np.int32)
        begins = np.flatnonzero(purchases.begins)
        first[purchases.customer[begins]] = purchases.day[begins]
        known = tickets.cached.results.add(key, Result(first))
    return known.holds


def last_days(purchases: PurchaseDays, size: int) -> Array:
    """The last day of each customer; the smallest number without one."""
    last = np.full(size, np.iinfo(np.int32).min, np.int32)
    ends = np.flatnonzero(np.append(purchases.begins[1:], True)[: purchases.day.size])
    last[purchases.customer[ends]] = purchases.day[ends]
    return last
