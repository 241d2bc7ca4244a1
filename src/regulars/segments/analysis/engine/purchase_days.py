"""The calendar days on which customers bought, each once."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from regulars.segments.analysis.engine.calendar import Zone
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.sales_runs import BOUGHT, EVER, SalesRun

_DAY_BITS: Final = 32


class PurchaseDays(NamedTuple):
    """Each customer with each purchase day, by customer and then by day."""

    customer: Array
    day: Array

    def where(self, some: Array) -> "PurchaseDays":
        return PurchaseDays(self.customer[some], self.day[some])

    def within(self, window: tuple[int, int]) -> Array:
        return (self.day >= window[0]) & (self.day <= window[1])

    @property
    def begins(self) -> Array:
        """Where a customer begins."""
        return begins_of(self.customer)

    def are_among(self, others: "PurchaseDays") -> Array:
        """Which of them are among others."""
        keys, known = _pack(self.customer, self.day), _pack(others.customer, others.day)
        places = np.searchsorted(known, keys)
        places[places == known.size] = 0
        among: Array = known[places] == keys if known.size else np.zeros(keys.size, bool)
        return among


def begins_of(*columns: Array) -> Array:
    """Where a value of the sorted columns differs from the one before it."""
    begins = np.ones(columns[0].size, bool)
    begins[1:] = False
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return begins


def purchase_days(purchases: Iterable[tuple[Array, Array]]) -> PurchaseDays:
    """Of purchases, as pairs of arrays (customers, days)."""
    return _unpack([_pack(customer, day) for customer, day in purchases])


def purchase_days_of(runs: Iterable[SalesRun], zone: Zone) -> PurchaseDays:
    """Of all sales of these runs. Each run retains its own sorted days, since runs do not change: a new sale costs a
    merge of sorted arrays."""
    return _unpack([_keys_of(run, zone) for run in runs])


def _keys_of(run: SalesRun, zone: Zone) -> Array:
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


def _unpack(keys: list[Array]) -> PurchaseDays:
    """A stable sort merges arrays that are sorted already."""
    together = _distinct(np.sort(np.concatenate([np.zeros(0, np.int64), *keys]), kind="stable"))
    day = (together & ((1 << _DAY_BITS) - 1)) + EVER[0]
    return PurchaseDays((together >> _DAY_BITS).astype(np.int32), day.astype(np.int32))


def _distinct(keys: Array) -> Array:
    return keys[begins_of(keys)]
