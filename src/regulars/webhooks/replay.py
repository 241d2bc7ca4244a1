"""Replay one delivery or all of a time range: a replay is a new delivery of the same message, with its `webhook-id`."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at, new_uuid
from regulars.kit.refusals import NotPossible
from regulars.webhooks.delivery.queue import DeliveryQueue
from regulars.webhooks.find import find_delivery
from regulars.webhooks.manage import lock_endpoint, require_enabled
from regulars.webhooks.queries import deliveries as queries

MESSAGES_MAX: Final = 10_000
BATCH_DELIVERIES: Final = 2_000
# How far the clocks of servers that make ids may differ.
CLOCK_DIFFERENCE_MAX: Final = timedelta(hours=1)
# Longer than deliveries are stored.
AGE_MAX: Final = timedelta(days=365)


async def replay_delivery(tx: Tx, organization_id: UUID, delivery_id: UUID | None) -> UUID:
    """Send the message of one delivery again; returns the id of the new delivery."""
    delivery = await find_delivery(tx, organization_id, delivery_id)
    endpoint = await lock_endpoint(tx, organization_id, delivery.endpoint_id)
    require_enabled(endpoint)
    if await queries.find_body(tx, organization_id, delivery.message_id) is None:
        raise NotPossible("The customer of this message was erased, and its content too.")
    new_id = new_uuid()
    await _insert_deliveries(tx, organization_id, [(new_id, endpoint.id, delivery.message_id)])
    return new_id


async def replay_range(
    tx: Tx,
    organization_id: UUID,
    endpoint_id: UUID | None,
    *,
    since: datetime,
    until: datetime | None = None,
    only_failed: bool = False,
) -> int:
    """Send the messages to an endpoint in a time range again, or only those that were never delivered; returns how
    many.

    Erased messages are skipped. If there are more than 10,000 messages none is sent: the caller must shorten the range.
    """
    endpoint = await lock_endpoint(tx, organization_id, endpoint_id)
    require_enabled(endpoint)
    end = tx.now if until is None else until
    ids = await _find_message_ids(tx, organization_id, endpoint.id, since=since, until=end, only_failed=only_failed)
    if len(ids) > MESSAGES_MAX:
        raise NotPossible(f"These are more than {MESSAGES_MAX:,} messages; choose a shorter time.")
    if ids:
        await _insert_deliveries(tx, organization_id, [(new_uuid(), endpoint.id, message_id) for message_id in ids])
    return len(ids)


async def _find_message_ids(
    tx: Tx, organization_id: UUID, endpoint_id: UUID, *, since: datetime, until: datetime, only_failed: bool
) -> list[UUID]:
    """Find the messages in batches, in the order in which they were first sent, up to one batch more than the limit.

    Ids begin with the time of their creation, so a time range is an index range; it is extended in case clocks differ.
    """
    # No delivery is older than `AGE_MAX`. Without this limit, a range that starts in the year 1 would overflow.
    since, until = max(since, tx.now - AGE_MAX), min(until, tx.now)
    after, last = first_id_at(since - CLOCK_DIFFERENCE_MAX), first_id_at(until + CLOCK_DIFFERENCE_MAX)
    ids: dict[UUID, None] = {}
    while len(ids) <= MESSAGES_MAX:
        batch = await queries.list_deliveries_to_replay(
            tx, organization_id, endpoint_id, after=after, until=last, only_failed=only_failed, limit=BATCH_DELIVERIES
        )
        ids |= {row.message_id: None for row in batch if row.can_be_sent and since <= row.created_at < until}
        if len(batch) < BATCH_DELIVERIES:
            break
        after = batch[-1].id
    return list(ids)


async def _insert_deliveries(tx: Tx, organization_id: UUID, deliveries: list[tuple[UUID, UUID, UUID]]) -> None:
    await queries.insert_deliveries(tx, organization_id, deliveries, is_replay=True)
    # Wakes the worker after the commit.
    tx.queues_to_wake.add((DeliveryQueue.name, organization_id))
