"""Forget a person's texts and replies; the totals stay."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.inbox.forget import forget_replies
from regulars.messaging.keep.texts import forget_texts
from regulars.messaging.providers.phone import forget_simulated


async def erase_texts(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes] = ()
) -> None:
    """Called under the locks of the person's numbers. A text that is being sent at this moment keeps only its state."""
    gone = await forget_texts(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    await forget_simulated(tx, organization_id, gone)
    await forget_replies(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
