"""Finds the number of each customer, which is the index in the columns, by profile id."""

import numpy as np

from regulars.columns.engine.cache import CachedColumns
from regulars.columns.engine.encoding import Array


def find_numbers(cached: CachedColumns, profile_ids: bytes, customers: Array) -> Array:
    """The customer number of each profile id of 16 bytes; -1 if no customer in the mask `customers` has the id.

    Customers and ids are sorted by the last 8 bytes of the id, which are random, so that memory is read in order.
    """
    # The first and the last 8 bytes of each id.
    high, low = cached.profile_columns()
    numbers = np.flatnonzero(customers)
    numbers = numbers[np.argsort(low[numbers])]
    sorted_low = low[numbers]
    ids = np.frombuffer(profile_ids, ">u8").reshape(-1, 2).astype(np.uint64)
    order = np.argsort(ids[:, 1])
    position = np.searchsorted(sorted_low, ids[order, 1])
    result = np.full(order.size, -1, np.int64)
    unresolved = np.arange(order.size)
    while unresolved.size:
        unresolved = unresolved[position[unresolved] < sorted_low.size]
        unresolved = unresolved[sorted_low[position[unresolved]] == ids[order[unresolved], 1]]
        is_same = high[numbers[position[unresolved]]] == ids[order[unresolved], 0]
        result[order[unresolved[is_same]]] = numbers[position[unresolved[is_same]]]
        # The remaining ids agree only in the last 8 bytes; compare them with the next customer.
        unresolved = unresolved[~is_same]
        position[unresolved] += 1
    return result
