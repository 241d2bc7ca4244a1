"""Replies that go: a person's, with the person; everybody's, after the time they are kept."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.inbox import queries
from regulars.messaging.inbox.known import remember_erased


async def forget_replies(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes], secret: bytes
) -> None:
    """Keyed hashes of the provider's ids stay for a time: its own list still has the messages."""
    gone = await queries.delete_replies_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    await remember_erased(tx, organization_id, gone, secret=secret)


async def forget_old_replies(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    return await queries.delete_old_replies(tx, organization_id, before=before, limit=limit)
