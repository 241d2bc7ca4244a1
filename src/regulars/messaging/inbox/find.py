"""Read replies."""

from collections.abc import Collection, Sequence
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows
from regulars.messaging.inbox import queries
from regulars.messaging.inbox.model import ReplyRow


async def list_replies(
    tx: Tx, organization_id: UUID, *, number_hash: bytes | None = None, undecided_only: bool = False, limit: int
) -> Sequence[ReplyRow]:
    """The newest first; `undecided_only` are those that wait for a person."""
    return await queries.list_replies(
        tx, organization_id, number_hash=number_hash, undecided_only=undecided_only, limit=limit
    )


async def find_reply(tx: Tx, organization_id: UUID, reply_id: UUID) -> ReplyRow | None:
    return await queries.find_reply(tx, organization_id, reply_id)


async def find_replies(tx: Tx, organization_id: UUID, reply_ids: Collection[UUID]) -> dict[UUID, ReplyRow]:
    return {reply.id: reply for reply in await queries.find_replies(tx, organization_id, reply_ids)}


async def list_waiting(tx: Tx, organization_id: UUID, page: PageRequest) -> PageRows[ReplyRow]:
    """Replies that wait for a person, the one that waits longest first."""
    return await queries.list_waiting(tx, organization_id, page)


async def find_suppressed(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> set[bytes]:
    return await queries.find_suppressed(tx, organization_id, number_hashes)
