"""Count new sales into the hours they belong to."""

from collections.abc import Collection, Sequence
from uuid import UUID

from regulars.kit.db import Tx
from regulars.sales.totals import queries


async def count_sales(tx: Tx, organization_id: UUID, ids: Collection[UUID] | Sequence[UUID]) -> None:
    """Add sales to the totals; whoever calls sees to it that each sale comes here once.

    Sales that were stored before there were totals are left to the fill, which knows them by their ids.
    """
    if ids:
        await queries.add_sales(tx, organization_id, list(ids))
