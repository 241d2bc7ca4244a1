"""The orders in which sales are read, each that of an index.

A store or customer is compared within rows, not by `=`. PostgreSQL would treat a column in `=` as constant and might
read another index in the order of ids, with the column as a filter: it would read every sale of the organization to
find those of a closed store.
"""

from typing import Final, LiteralString, NamedTuple
from uuid import UUID

# The scope of blocks that have the sales of all stores.
ALL_STORES: Final = UUID(int=0)


class Order(NamedTuple):
    """An index of sales: the condition for the rows after a position and before an end, and the columns."""

    between: LiteralString
    ordered: LiteralString


BY_ID: Final = Order("e.id > %(after)s AND e.id < %(until_id)s", "e.id")
BY_STORE: Final = Order(
    "(e.store_id, e.id) > (%(store_id)s, %(after)s) AND (e.store_id, e.id) < (%(store_id)s, %(until_id)s)",
    "e.store_id, e.id",
)
BY_PROFILE: Final = Order(
    # The index has only sales with a customer, which the planner does not conclude from the rows.
    "e.profile_id IS NOT NULL"
    " AND (e.profile_id, e.id) > (%(profile_id)s, %(after)s) AND (e.profile_id, e.id) < (%(profile_id)s, %(until_id)s)",
    "e.profile_id, e.id",
)
BY_TIME: Final = Order(
    "(e.occurred_at, e.id) > (%(after_time)s, %(after)s) AND e.occurred_at < %(until_time)s", "e.occurred_at, e.id"
)
