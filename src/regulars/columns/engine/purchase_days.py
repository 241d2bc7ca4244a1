"""Finds the distinct calendar days on which each customer bought."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from regulars.columns.engine.calendar import Zone
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.sales_runs import ALL_DAYS, BOUGHT, SalesRun

# A customer and a day are packed into one 64-bit key; the day is in the lower bits.
_DAY_BITS: Final = 32


class PurchaseDays(NamedTuple):
    """Pairs of a customer and a purchase day, sorted by customer and then by day."""

    customer: Array
    day: Array
    # The cached result of `starts`.
    cached_starts: Array | None = None

    def where(self, selection: Array) -> "PurchaseDays":
        return PurchaseDays(self.customer[selection], self.day[selection])

    def within(self, window: tuple[int, int]) -> Array:
        return (self.day >= window[0]) & (self.day <= window[1])

    @property
    def starts(self) -> Array:
        """The index of the first day of each customer."""
        return np.flatnonzero(begins_of(self.customer)) if self.cached_starts is None else self.cached_starts

    def are_among(self, others: "PurchaseDays") -> Array:
        """A mask of the pairs that `others` also contains."""
        keys, other_keys = _pack(self.customer, self.day), _pack(others.customer, others.day)
        positions = np.searchsorted(other_keys, keys)
        positions[positions == other_keys.size] = 0
        is_common: Array = other_keys[positions] == keys if other_keys.size else np.zeros(keys.size, bool)
        return is_common


def begins_of(*columns: Array) -> Array:
    """A mask of the rows in which at least one of the sorted columns differs from the row before."""
    begins = np.ones(columns[0].size, bool)
    first, *others = columns
    np.not_equal(first[1:], first[:-1], out=begins[1:])
    for column in others:
        begins[1:] |= column[1:] != column[:-1]
    return begins


def purchase_days(purchases: Iterable[tuple[Array, Array]]) -> PurchaseDays:
    """The distinct days of purchases, which are given as pairs of arrays (customers, days)."""
    return unpack(_merge_distinct([_pack(customer, day) for customer, day in purchases]))


def purchase_keys(runs: Iterable[SalesRun], zone: Zone) -> Array:
    """The sorted keys (customer and day) of all purchases of these runs, which are stored chunks of sales. Each run
    caches its keys under `BOUGHT` and the time zone, since runs do not change."""
    return _merge_distinct([_keys_of(run, zone) for run in runs])


def merge_keys(keys: Array, new_keys: Array) -> Array:
    """Merge the sorted keys of two arrays, each once."""
    indexes = np.searchsorted(keys, new_keys)
    is_new = np.append(keys, -1)[indexes] != new_keys
    return np.insert(keys, indexes[is_new], new_keys[is_new])


def _keys_of(run: SalesRun, zone: Zone) -> Array:
    name = BOUGHT + zone.name
    if name not in run.parts:
        days = run.days(zone)
        for other in [other for other in run.parts if other.startswith(BOUGHT)]:
            del run.parts[other]
        # A kind is twice the code of the currency, plus 1 for a return.
        is_purchase = run.parts["kind"] & 1 == 0
        run.parts[name] = _distinct(np.sort(_pack(run.parts["customer"][is_purchase], days[is_purchase])))
    return run.parts[name]


def _pack(customer: Array, day: Array) -> Array:
    return (customer.astype(np.int64) << _DAY_BITS) + (day.astype(np.int64) - ALL_DAYS[0])


def unpack(keys: Array) -> PurchaseDays:
    day = (keys & ((1 << _DAY_BITS) - 1)) + ALL_DAYS[0]
    return PurchaseDays((keys >> _DAY_BITS).astype(np.int32), day.astype(np.int32))


def _merge_distinct(keys: list[Array]) -> Array:
    """Each key once. A stable sort merges arrays that are sorted already."""
    return _distinct(np.sort(np.concatenate([np.zeros(0, np.int64), *keys]), kind="stable"))


def _distinct(keys: Array) -> Array:
    return keys[begins_of(keys)]
