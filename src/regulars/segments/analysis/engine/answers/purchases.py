"""The days on which customers bought: what they bought first, how often and how long after."""

from typing import Final, NamedTuple

import numpy as np

from regulars.segments.analysis.engine.answers.tickets import Tickets, Window
from regulars.segments.analysis.engine.cache import Result
from regulars.segments.analysis.engine.calendar import Zone
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.sales_runs import BOUGHT, EVER, SalesRun

NEVER: Final = np.iinfo(np.int32).max
_DAY_BITS: Final = 32


class PurchaseDays(NamedTuple):
    """Each customer with each day on which the customer bought, once, by customer and then by day."""

    customer: Array
    day: Array

    def where(self, some: Array) -> "PurchaseDays":
        return PurchaseDays(self.customer[some], self.day[some])

    def within(self, window: Window) -> Array:
        return (self.day >= window[0]) & (self.day <= window[1])

    @property
    def begins(self) -> Array:
        """Where a customer begins."""
        return begins_of(self.customer)


def begins_of(*columns: Array) -> Array:
    """Where a value of a sorted column differs from the one before it."""
    begins = np.ones(columns[0].size, bool)
    begins[1:] = False
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return begins


def all_purchases(tickets: Tickets) -> PurchaseDays:
    """Of all customers and stores, also of erased customers. Each run has its own sorted days, since runs do not
    change: a new sale costs a merge of sorted arrays."""
    cached = tickets.cached
    key = ("purchase days", tickets.zone.name, cached.sales_as_of)
    known = cached.results.find(key)
    if known is None:
        keys = [_keys_of_run(cached.sales[run.id], tickets.zone) for run in cached.runs("sales")]
        days = _unpack(np.concatenate(keys) if keys else np.zeros(0, np.int64))
        known = cached.results.add(key, Result(days.customer, days.day))
    if known.unknown is None:
        raise AssertionError("purchases have days")
    return PurchaseDays(known.holds, known.unknown)


def purchases_of(tickets: Tickets, window: Window) -> PurchaseDays:
    """Of the members at the chosen stores."""
    if tickets.stores is None:
        days = all_purchases(tickets)
        return days.where(days.within(window) & tickets.members[days.customer])
    keys = []
    for selection in tickets.select(window, of_customers=True):
        is_purchase = selection.of("kind") & 1 == 0
        keys.append(_pack(selection.of("customer")[is_purchase], tickets.days_of(selection)[is_purchase]))
    return _unpack(np.concatenate(keys) if keys else np.zeros(0, np.int64))


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


def are_among(purchases: PurchaseDays, wanted: PurchaseDays) -> Array:
    """Which of the purchase days are among the wanted ones."""
    keys, others = _pack(purchases.customer, purchases.day), _pack(wanted.customer, wanted.day)
    places = np.searchsorted(others, keys)
    places[places == others.size] = 0
    among: Array = others[places] == keys if others.size else np.zeros(keys.size, bool)
    return among


def _keys_of_run(run: SalesRun, zone: Zone) -> Array:
    name = BOUGHT + zone.name
    if name not in run.parts:
        days = run.days(zone)
        for other in [other for other in run.parts if other.startswith(BOUGHT)]:
            del run.parts[other]
        is_purchase = run.parts["kind"] & 1 == 0
        run.parts[name] = _distinct(np.sort(_pack(run.parts["customer"][is_purchase], days[is_purchase])))
    return run.parts[name]


def _pack(customer: Array, day: Array) -> Array:
    return (customer.astype(np.int64) << _DAY_BITS) + (day.astype(np.int64) - EVER[0])


def _unpack(keys: Array) -> PurchaseDays:
    """A stable sort merges the runs that are sorted already."""
    keys = _distinct(np.sort(keys, kind="stable"))
    day = (keys & ((1 << _DAY_BITS) - 1)) + EVER[0]
    return PurchaseDays((keys >> _DAY_BITS).astype(np.int32), day.astype(np.int32))


def _distinct(keys: Array) -> Array:
    return keys[begins_of(keys)]
