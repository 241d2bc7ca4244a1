"""Send again: a replay is a new delivery of the same message, with the same `webhook-id`."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at, new_uuid
from regulars.webhooks import queries
from regulars.webhooks.delivery.queue import DeliveryQueue
from regulars.webhooks.errors import DeliveryNotFound, NotPossibleNow
from regulars.webhooks.manage import find_endpoint, require_enabled

MESSAGES_MAX: Final = 10_000
BITE_DELIVERIES: Final = 2_000
CLOCKS_APART_MAX: Final = timedelta(hours=1)
# Longer than deliveries are kept.
OLDEST: Final = timedelta(days=365)


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
    end = tx.now if until is None else until
    messages = await _find_messages(tx, organization_id, endpoint.id, since=since, until=end, only_failed=only_failed)
    if len(messages) > MESSAGES_MAX:
        raise NotPossibleNow(f"These are more than {MESSAGES_MAX:,} messages; choose a shorter time.")
    if messages:
        await _insert(tx, organization_id, [(new_uuid(), endpoint.id, message_id) for message_id in messages])
    return len(messages)


async def _find_messages(
    tx: Tx, organization_id: UUID, endpoint_id: UUID, *, since: datetime, until: datetime, only_failed: bool
) -> list[UUID]:
    """In bites, in the order in which they were first sent; no further than to one more than may be sent again.

    Ids begin with their time, so the time is a stretch of an index, a little longer than it for clocks that differ.
    """
    # Nothing is older than that; whoever asks from the year 1 on asks for everything.
    since, until = max(since, tx.now - OLDEST), min(until, tx.now)
    after, last = first_id_at(since - CLOCKS_APART_MAX), first_id_at(until + CLOCKS_APART_MAX)
    found: dict[UUID, None] = {}
    while len(found) <= MESSAGES_MAX:
        bite = await queries.list_deliveries_to_replay(
            tx, organization_id, endpoint_id, after=after, until=last, only_failed=only_failed, limit=BITE_DELIVERIES
        )
        found |= {one.message_id: None for one in bite if one.can_be_sent and since <= one.created_at < until}
        if len(bite) < BITE_DELIVERIES:
            break
        after = bite[-1].id
    return list(found)


async def _insert(tx: Tx, organization_id: UUID, deliveries: list[tuple[UUID, UUID, UUID]]) -> None:
    await queries.insert_deliveries(tx, organization_id, deliveries, is_replay=True)
    tx.touched.add((DeliveryQueue.name, organization_id))
