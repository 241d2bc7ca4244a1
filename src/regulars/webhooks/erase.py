"""The webhooks' part in the erasure of a person."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.webhooks import queries


async def erase_messages(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], subscription_ids: Collection[UUID] = ()
) -> None:
    """Cancel what still waits to be sent about these people, and blank what was said and answered.

    That they were erased is sent all the same: such messages hold their ids only.
    """
    messages = await queries.blank_messages(
        tx, organization_id, profile_ids=profile_ids, subscription_ids=subscription_ids
    )
    if messages:
        await queries.cancel_deliveries(tx, organization_id, messages)
        await queries.blank_answers(tx, organization_id, messages)
