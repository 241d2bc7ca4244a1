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
        return days.where(days.within(window) & tickets.members[days.customer])
    purchases = [
        selection.where(selection.all_of("kind") & 1 == 0) for selection in tickets.select(window, of_customers=True)
    ]
    return purchase_days([(selection.of("customer"), selection.days(tickets.zone)) for selection in purchases])


def first_days(purchases: PurchaseDays, size: int) -> Array:
    """The first day of each customer; NEVER without one."""
    first = np.full(size, NEVER, np.int32)
    begins = purchases.begins
    first[purchases.customer[begins]] = purchases.day[begins]
    return first


def last_days(purchases: PurchaseDays, size: int) -> Array:
    """The last day of each customer; the smallest number without one."""
    last = np.full(size, np.iinfo(np.int32).min, np.int32)
    ends = np.append(purchases.begins[1:], True)[: purchases.day.size]
    last[purchases.customer[ends]] = purchases.day[ends]
    return last
