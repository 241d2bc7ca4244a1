"""Remove personal data from webhook messages when a person is erased, and delete all messages after 30 days."""

from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.webhooks.model import RETENTION
from regulars.webhooks.queries import deliveries
from regulars.webhooks.queries.endpoints import delete_unused_endpoints
from regulars.work.personal import ErasedPeople, PersonalData
from regulars.work.queue import delete_in_batches


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Cancel waiting deliveries of messages about these people, and remove the content of the messages and responses.

    The messages about their erasure are sent nevertheless, because they contain only ids.
    """
    messages = await deliveries.blank_messages(
        tx, organization_id, profile_ids=people.profile_ids, subscription_ids=people.subscription_ids
    )
    if messages:
        await deliveries.cancel_deliveries(tx, organization_id, messages)
        await deliveries.blank_responses(tx, organization_id, messages)


async def sweep_old_messages(database: Database, organization_id: UUID) -> None:
    await delete_in_batches(database, organization_id, _delete_old_messages, retention=RETENTION)


async def _delete_old_messages(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    ids = await deliveries.find_old_messages(tx, organization_id, until=before, limit=limit)
    await deliveries.delete_attempts(tx, organization_id, ids)
    await deliveries.delete_deliveries(tx, organization_id, ids)
    await deliveries.delete_messages(tx, organization_id, ids)
    await delete_unused_endpoints(tx, organization_id)
    return len(ids)


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "webhook_messages.body",
        "webhook_attempts.answer",
    ),
    not_personal={
        "webhook_messages.profile_id": "a canonical id, which identifies no person after an erasure",
        "webhook_attempts.error": "our own sentence about a connection",
        "webhook_messages.type": "the name of a kind of event",
        "webhook_deliveries": "ids and times",
        "webhook_endpoints": "about the retailer's systems",
    },
    erase=_erase,
)
