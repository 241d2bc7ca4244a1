"""Store each webhook event as a message, with a delivery for each endpoint that receives it."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import WEBHOOK, new_uuid
from regulars.webhooks.delivery.queue import DeliveryQueue
from regulars.webhooks.manage import lock_endpoint, require_enabled
from regulars.webhooks.model import PING, Message, expand_types
from regulars.webhooks.queries.deliveries import insert_deliveries, insert_messages


class WebhookEvent(NamedTuple):
    """An event: its type, its time, and its data as encoded JSON. `of_erasure`: it reports a customer's erasure."""

    type: str
    at: datetime
    data: bytes
    profile_id: UUID | None = None
    subscription_id: UUID | None = None
    of_erasure: bool = False


async def post_events(tx: Tx, organization_id: UUID, events: Sequence[WebhookEvent]) -> None:
    """Insert a message for each event that an enabled endpoint receives, and a delivery for each such endpoint."""
    enabled = await tx.fetch(
        "SELECT id, event_types FROM webhook_endpoints WHERE organization_id = %s AND state = 'enabled' ORDER BY id",
        (organization_id,),
    )
    receivers = [(endpoint_id, expand_types(types)) for endpoint_id, types in enabled]
    messages: list[Message] = []
    # The ids of each delivery, its endpoint and its message.
    deliveries: list[tuple[UUID, UUID, UUID]] = []
    for event in events:
        endpoint_ids = [endpoint_id for endpoint_id, types in receivers if event.type in types]
        if endpoint_ids:
            message = _make_message(event, now=tx.now)
            messages.append(message)
            deliveries += [(new_uuid(), endpoint_id, message.id) for endpoint_id in endpoint_ids]
    if messages:
        await _insert_all(tx, organization_id, messages, deliveries)


async def ping(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> UUID:
    """Send a test event to one endpoint, whatever events it chose; returns the id of the delivery."""
    endpoint = await lock_endpoint(tx, organization_id, endpoint_id)
    require_enabled(endpoint)
    data = msgspec.json.encode({"webhook": WEBHOOK.encode(endpoint.id)})
    message = _make_message(WebhookEvent(PING, tx.now, data), now=tx.now)
    delivery_id = new_uuid()
    await _insert_all(tx, organization_id, [message], [(delivery_id, endpoint.id, message.id)])
    return delivery_id


async def _insert_all(
    tx: Tx, organization_id: UUID, messages: Sequence[Message], deliveries: Sequence[tuple[UUID, UUID, UUID]]
) -> None:
    await insert_messages(tx, organization_id, messages)
    await insert_deliveries(tx, organization_id, deliveries)
    # Wakes the worker after the commit.
    tx.queues_to_wake.add((DeliveryQueue.name, organization_id))


def _make_message(event: WebhookEvent, *, now: datetime) -> Message:
    body = b'{"type":"%s","timestamp":"%s","data":%s}' % (
        event.type.encode(),
        format_timestamp(event.at).encode(),
        event.data,
    )
    return Message(
        new_uuid(), event.type, body.decode(), event.profile_id, event.subscription_id, event.of_erasure, now
    )
