"""Make messages of events, and a delivery for each endpoint that takes them."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import WEBHOOK, new_uuid
from regulars.webhooks import queries
from regulars.webhooks.delivery.queue import DeliveryQueue
from regulars.webhooks.manage import find_endpoint, require_enabled
from regulars.webhooks.model import PING, Message, expand


class Event(NamedTuple):
    """What happened, when, and the finished JSON of what it is about."""

    type: str
    at: datetime
    data: bytes
    profile_id: UUID | None = None
    subscription_id: UUID | None = None
    of_erasure: bool = False


async def post_events(tx: Tx, organization_id: UUID, events: Sequence[Event]) -> None:
    """One message for each event that any enabled endpoint takes, and one delivery for each of those."""
    takers = [(endpoint_id, expand(types)) for endpoint_id, types in await queries.find_takers(tx, organization_id)]
    messages: list[Message] = []
    deliveries: list[tuple[UUID, UUID, UUID]] = []
    for event in events:
        wanted_by = [endpoint_id for endpoint_id, takes in takers if event.type in takes]
        if wanted_by:
            message = _message(event, now=tx.now)
            messages.append(message)
            deliveries += [(new_uuid(), endpoint_id, message.id) for endpoint_id in wanted_by]
    if messages:
        await _insert(tx, organization_id, messages, deliveries)


async def ping(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> UUID:
    """Send a test event to one endpoint, whatever types it takes; give the delivery."""
    endpoint = await find_endpoint(tx, organization_id, endpoint_id)
    require_enabled(endpoint)
    data = msgspec.json.encode({"webhook": WEBHOOK.encode(endpoint.id)})
    message = _message(Event(PING, tx.now, data), now=tx.now)
    delivery_id = new_uuid()
    await _insert(tx, organization_id, [message], [(delivery_id, endpoint.id, message.id)])
    return delivery_id


async def _insert(
    tx: Tx, organization_id: UUID, messages: Sequence[Message], deliveries: Sequence[tuple[UUID, UUID, UUID]]
) -> None:
    await queries.insert_messages(tx, organization_id, messages)
    await queries.insert_deliveries(tx, organization_id, deliveries)
    tx.touched.add((DeliveryQueue.name, organization_id))


def _message(event: Event, *, now: datetime) -> Message:
    body = b'{"type":"%s","timestamp":"%s","data":%s}' % (
        event.type.encode(),
        format_timestamp(event.at).encode(),
        event.data,
    )
    return Message(
        new_uuid(), event.type, body.decode(), event.profile_id, event.subscription_id, event.of_erasure, now
    )
