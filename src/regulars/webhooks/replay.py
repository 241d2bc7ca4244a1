"""Send again: a replay is a new delivery of the same message, with the same `webhook-id`."""

from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.webhooks import queries
from regulars.webhooks.delivery.queue import DeliveryQueue
from regulars.webhooks.errors import DeliveryNotFound, NotPossibleNow
from regulars.webhooks.manage import find_endpoint, require_enabled

MESSAGES_MAX: Final = 10_000


async def replay_delivery(tx: Tx, organization_id: UUID, delivery_id: UUID | None) -> UUID:
    """Send the message of one delivery again; give the new delivery."""
    delivery = None if delivery_id is None else await queries.find_delivery(tx, organization_id, delivery_id)
    if delivery is None:
        raise DeliveryNotFound("There is no delivery with this id; they are kept for 30 days.")
    endpoint = await find_endpoint(tx, organization_id, delivery.endpoint_id)
    require_enabled(endpoint)
    if await queries.find_body(tx, organization_id, delivery.message_id) is None:
        raise NotPossibleNow("The person whom the message spoke of was erased, and its content with them.")
    identifier = new_uuid()
    await _insert(tx, organization_id, [(identifier, endpoint.id, delivery.message_id)])
    return identifier


async def replay_range(
    tx: Tx,
    organization_id: UUID,
    endpoint_id: UUID | None,
    *,
    since: datetime,
    until: datetime | None = None,
    only_failed: bool = False,
) -> int:
    """Send again what went to an endpoint in a time, or only what never arrived; give how many messages.

    What was erased meanwhile is left out. Of more than 10,000 messages none is sent: the range is to be cut.
    """
    endpoint = await find_endpoint(tx, organization_id, endpoint_id)
    require_enabled(endpoint)
    messages = await queries.find_messages_to_replay(
        tx,
        organization_id,
        endpoint.id,
        since=since,
        until=tx.now if until is None else until,
        only_failed=only_failed,
        limit=MESSAGES_MAX + 1,
    )
    if len(messages) > MESSAGES_MAX:
        raise NotPossibleNow(f"These are more than {MESSAGES_MAX:,} messages; choose a shorter time.")
    if messages:
        await _insert(tx, organization_id, [(new_uuid(), endpoint.id, message_id) for message_id in messages])
    return len(messages)


async def _insert(tx: Tx, organization_id: UUID, deliveries: list[tuple[UUID, UUID, UUID]]) -> None:
    await queries.insert_deliveries(tx, organization_id, deliveries, is_replay=True)
    tx.touched.add((DeliveryQueue.name, organization_id))
