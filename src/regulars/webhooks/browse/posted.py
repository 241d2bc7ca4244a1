"""What was made of the changes of one subscription."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.webhooks.browse import queries


class Posted(NamedTuple):
    """An event and how many endpoints it goes to; `delivery_id` is the first of its deliveries."""

    type: str
    created_at: datetime
    deliveries: int
    delivered: int
    delivery_id: UUID | None


async def list_posted(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, since: datetime, limit: int
) -> list[Posted]:
    """What was made of a subscription's changes since a moment, the oldest first."""
    rows = await queries.list_posted(tx, organization_id, subscription_id, since=since, limit=limit)
    return [Posted(*row) for row in rows]
