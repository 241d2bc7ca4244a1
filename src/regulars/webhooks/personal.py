"""Remove personal data from webhook messages when a person is erased, and delete all messages after 30 days."""

from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.webhooks.model import RETENTION
from regulars.webhooks.queries import deliveries
from regulars.work.personal import ErasedPeople, PersonalData
from regulars.work.queue import delete_in_batches

# Statements about messages, in the order in which they are run.
_CANCEL_DELIVERIES: Final = """
    UPDATE webhook_deliveries SET state = 'cancelled', due_at = NULL, owner = NULL
    WHERE organization_id = %(organization_id)s AND message_id = ANY (%(messages)s::uuid[]) AND state = 'pending'
"""
_BLANK_RESPONSES: Final = """
    UPDATE webhook_attempts SET answer = NULL
    WHERE organization_id = %(organization_id)s AND answer IS NOT NULL AND delivery_id IN (
        SELECT id FROM webhook_deliveries
        WHERE organization_id = %(organization_id)s AND message_id = ANY (%(messages)s::uuid[])
    )
"""
_DELETE_ATTEMPTS: Final = """
    DELETE FROM webhook_attempts WHERE organization_id = %(organization_id)s AND delivery_id IN (
        SELECT id FROM webhook_deliveries
        WHERE organization_id = %(organization_id)s AND message_id = ANY (%(messages)s::uuid[])
    )
"""
_DELETE_DELIVERIES: Final = """
    DELETE FROM webhook_deliveries
    WHERE organization_id = %(organization_id)s AND message_id = ANY (%(messages)s::uuid[])
"""
_DELETE_MESSAGES: Final = """
    DELETE FROM webhook_messages WHERE organization_id = %(organization_id)s AND id = ANY (%(messages)s::uuid[])
"""
# The rows of deleted endpoints that have no deliveries left.
_DELETE_ENDPOINTS: Final = """
    DELETE FROM webhook_endpoints e
    WHERE e.organization_id = %(organization_id)s AND e.state = 'deleted' AND NOT EXISTS (
        SELECT FROM webhook_deliveries d WHERE d.organization_id = %(organization_id)s AND d.endpoint_id = e.id
    )
"""


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Cancel waiting deliveries of messages about these people, and remove the content of the messages and responses.

    The messages about their erasure are sent nevertheless, because they contain only ids.
    """
    messages = await tx.fetch_column(
        """
        UPDATE webhook_messages SET body = NULL
        WHERE organization_id = %s AND NOT of_erasure AND body IS NOT NULL
          AND (profile_id = ANY (%s::uuid[]) OR subscription_id = ANY (%s::uuid[]))
        RETURNING id
        """,
        (organization_id, people.profile_ids, people.subscription_ids),
    )
    if messages:
        values = {"organization_id": organization_id, "messages": messages}
        await tx.execute(_CANCEL_DELIVERIES, values)
        await tx.execute(_BLANK_RESPONSES, values)


async def sweep_old_messages(database: Database, organization_id: UUID) -> None:
    await delete_in_batches(database, organization_id, _delete_old_messages, retention=RETENTION)


async def _delete_old_messages(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    ids = await deliveries.find_old_messages(tx, organization_id, until=before, limit=limit)
    values = {"organization_id": organization_id, "messages": ids}
    await tx.execute(_DELETE_ATTEMPTS, values)
    await tx.execute(_DELETE_DELIVERIES, values)
    await tx.execute(_DELETE_MESSAGES, values)
    await tx.execute(_DELETE_ENDPOINTS, values)
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
