"""List and count webhook endpoints with their recent deliveries, and deliveries with their attempts."""

from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, reading_in_index_order
from regulars.kit.refusals import NotFound
from regulars.webhooks.manage import list_endpoints
from regulars.webhooks.model import (
    Delivery,
    DeliveryDetails,
    DeliveryFilter,
    DeliveryState,
    Endpoint,
    EndpointStatus,
    PostedEvent,
    WaitingDeliveries,
)
from regulars.webhooks.queries import deliveries, lists

LIMIT_MAX: Final = 200
LAST_DELIVERIES_SHOWN: Final = 24
# Waiting deliveries are counted up to one more than this, so that pages can show `1,000+`.
WAITING_COUNTED_MAX: Final = 1_000
FAILED_COUNTED_MAX: Final = 10_000


async def list_newest_deliveries(
    tx: Tx,
    organization_id: UUID,
    *,
    endpoint_id: UUID | None = None,
    state: DeliveryState | None = None,
    limit: int = 50,
) -> list[Delivery]:
    """Return deliveries, newest first; scan as many rows as needed to find `limit` of them."""
    filters, request, newest = DeliveryFilter(endpoint_id, state), PageRequest(limit), list[Delivery]()
    while True:
        page = await lists.list_deliveries(tx, organization_id, filters, request)
        newest += page
        if len(newest) >= limit or page.end_position is None:
            return newest[:limit]
        request = PageRequest(limit, page.end_position)


async def find_delivery(tx: Tx, organization_id: UUID, delivery_id: UUID | None) -> Delivery:
    delivery = None if delivery_id is None else await deliveries.find_delivery(tx, organization_id, delivery_id)
    if delivery is None:
        raise NotFound("There is no delivery with this id; they are kept for 30 days.")
    return delivery


async def find_details(tx: Tx, organization_id: UUID, delivery_id: UUID | None) -> DeliveryDetails:
    delivery = await find_delivery(tx, organization_id, delivery_id)
    return DeliveryDetails(
        delivery,
        await deliveries.find_body(tx, organization_id, delivery.message_id),
        await deliveries.list_attempts(tx, organization_id, delivery.id),
    )


async def count_failed(tx: Tx, organization_id: UUID, endpoint_id: UUID) -> int:
    return await tx.fetch_count(
        """
        SELECT count(*) FROM (
            SELECT 1 FROM webhook_deliveries
            WHERE organization_id = %s AND endpoint_id = %s AND state = 'failed'
            ORDER BY id
            LIMIT %s
        ) AS failed
        """,
        (organization_id, endpoint_id, FAILED_COUNTED_MAX),
    )


async def list_posted_events(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, since: datetime, limit: int
) -> list[PostedEvent]:
    """Return the events about a subscription since a time, oldest first, with the state of their deliveries."""
    return await tx.fetch_all(
        PostedEvent,
        """
        SELECT m.type, m.created_at, d.total, d.delivered, d.first_id
        FROM (
            SELECT id, type, created_at FROM webhook_messages
            WHERE organization_id = %(organization_id)s AND subscription_id = %(subscription_id)s
              AND created_at >= %(since)s
            ORDER BY id
            LIMIT %(limit)s
        ) AS m
        CROSS JOIN LATERAL (
            SELECT count(*) AS total, count(*) FILTER (WHERE state = 'delivered') AS delivered,
                   (array_agg(id ORDER BY id))[1] AS first_id
            FROM webhook_deliveries WHERE organization_id = %(organization_id)s AND message_id = m.id
        ) AS d
        ORDER BY m.id
        """,
        {"organization_id": organization_id, "subscription_id": subscription_id, "since": since, "limit": limit},
    )


async def list_statuses(tx: Tx, organization_id: UUID) -> list[EndpointStatus]:
    """Return all endpoints; those that need attention come first."""
    statuses = await _load_statuses(tx, organization_id, await list_endpoints(tx, organization_id))
    return sorted(statuses, key=lambda status: (not status.needs_attention, status.endpoint.state == "disabled"))


async def find_status(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> EndpointStatus | None:
    endpoints = [endpoint for endpoint in await list_endpoints(tx, organization_id) if endpoint.id == endpoint_id]
    statuses = await _load_statuses(tx, organization_id, endpoints)
    return statuses[0] if statuses else None


async def count_endpoints_needing_attention(tx: Tx, organization_id: UUID) -> int:
    """Count the endpoints that fail, were disabled because they failed, or wait for approval."""
    return len(await _list_needing_attention(tx, organization_id))


async def list_endpoints_needing_attention(tx: Tx, organization_id: UUID) -> list[EndpointStatus]:
    """Return the endpoints that fail or wait for approval, each with the number of its waiting deliveries."""
    endpoints = await _list_needing_attention(tx, organization_id)
    if not endpoints:
        return []
    async with reading_in_index_order(tx):
        waiting = await lists.count_waiting(
            tx, organization_id, [endpoint.id for endpoint in endpoints], limit=WAITING_COUNTED_MAX + 1
        )
    return [EndpointStatus(endpoint, [], waiting.get(endpoint.id, WaitingDeliveries())) for endpoint in endpoints]


async def _list_needing_attention(tx: Tx, organization_id: UUID) -> list[Endpoint]:
    statuses = [EndpointStatus(row, [], WaitingDeliveries()) for row in await list_endpoints(tx, organization_id)]
    return [status.endpoint for status in statuses if status.needs_attention]


async def _load_statuses(tx: Tx, organization_id: UUID, endpoints: list[Endpoint]) -> list[EndpointStatus]:
    if not endpoints:
        return []
    ids = [endpoint.id for endpoint in endpoints]
    async with reading_in_index_order(tx):
        last = await lists.list_last_outcomes(tx, organization_id, ids, limit=LAST_DELIVERIES_SHOWN)
        waiting = await lists.count_waiting(tx, organization_id, ids, limit=WAITING_COUNTED_MAX + 1)
    return [EndpointStatus(row, last.get(row.id, []), waiting.get(row.id, WaitingDeliveries())) for row in endpoints]
