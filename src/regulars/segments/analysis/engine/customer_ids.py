"""Finds the numbers of customers, which are their positions in the columns, by profile id."""

import numpy as np

from regulars.segments.analysis.engine.cache import CachedColumns
from regulars.segments.analysis.engine.encoding import Array


def find_numbers(cached: CachedColumns, profile_ids: bytes, among: Array) -> Array:
    """The number of the customer of each profile id of 16 bytes; -1 if no customer in the mask `among` has the id.

    Both sides are sorted by the last 8 bytes of the id, which are random, so that memory is read in order.
    """
    high, low = cached.profile_columns()
    numbers = np.flatnonzero(among)
    numbers = numbers[np.argsort(low[numbers])]
    sorted_low = low[numbers]
    wanted = np.frombuffer(profile_ids, ">u8").reshape(-1, 2).astype(np.uint64)
    order = np.argsort(wanted[:, 1])
    position = np.searchsorted(sorted_low, wanted[order, 1])
    found = np.full(order.size, -1, np.int64)
    unresolved = np.arange(order.size)
    while unresolved.size:
        unresolved = unresolved[position[unresolved] < sorted_low.size]
        unresolved = unresolved[sorted_low[position[unresolved]] == wanted[order[unresolved], 1]]
        is_same = high[numbers[position[unresolved]]] == wanted[order[unresolved], 0]
        found[order[unresolved[is_same]]] = numbers[position[unresolved[is_same]]]
        # The others agree only in the last 8 bytes; the next customer may be the right one.
        unresolved = unresolved[~is_same]
        position[unresolved] += 1
    return found
