"""Read replies."""

from collections.abc import Sequence
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.inbox import queries
from regulars.messaging.inbox.model import ReplyRow


async def list_replies(
    tx: Tx,
    organization_id: UUID,
    *,
    number_hash: bytes | None = None,
    undecided_only: bool = False,
    before: UUID | None = None,
    limit: int,
) -> Sequence[ReplyRow]:
    """The newest first; `undecided_only` are those that wait for a person."""
    return await queries.list_replies(
        tx, organization_id, number_hash=number_hash, undecided_only=undecided_only, before=before, limit=limit
    )
