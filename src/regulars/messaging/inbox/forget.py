"""Replies that go: a person's, with the person; everybody's, after the time they are kept."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.inbox import queries


async def forget_replies(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes]
) -> None:
    await queries.delete_replies_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)


async def forget_old_replies(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    return await queries.delete_old_replies(tx, organization_id, before=before, limit=limit)
