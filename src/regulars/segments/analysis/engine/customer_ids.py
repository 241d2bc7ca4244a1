"""The numbers of many customers by the ids of their profiles."""

import numpy as np

from regulars.segments.analysis.engine.cache import CachedColumns
from regulars.segments.analysis.engine.encoding import Array


def find_numbers(cached: CachedColumns, profile_ids: bytes, among: Array) -> Array:
    """The number of each customer, -1 where there is none; an id has 16 bytes, and `among` is a mask.

    Both sides are sorted by the last 8 bytes of the id, which are random, so that they are read in order.
    """
    high, low = cached.profile_columns()
    numbers = np.flatnonzero(among)
    numbers = numbers[np.argsort(low[numbers])]
    known = low[numbers]
    wanted = np.frombuffer(profile_ids, ">u8").reshape(-1, 2).astype(np.uint64)
    order = np.argsort(wanted[:, 1])
    place = np.searchsorted(known, wanted[order, 1])
    found = np.full(order.size, -1, np.int64)
    left = np.arange(order.size)
    while left.size:
        left = left[place[left] < known.size]
        left = left[known[place[left]] == wanted[order[left], 1]]
        is_same = high[numbers[place[left]]] == wanted[order[left], 0]
        found[order[left[is_same]]] = numbers[place[left[is_same]]]
        # Others have the same last bytes only; the next one may be meant.
        left = left[~is_same]
        place[left] += 1
    return found
