"""Read endpoints with their recent deliveries, and deliveries with their attempts."""

from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows, read_in_index_order
from regulars.webhooks.errors import DeliveryNotFound
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
from regulars.webhooks.queries.endpoints import list_endpoints

LIMIT_MAX: Final = 200
LAST_SHOWN: Final = 24
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
    """Deliveries, newest first. For commands: the search does not stop at a number of scanned rows."""
    filters, request, found = DeliveryFilter(endpoint_id, state), PageRequest(limit), list[Delivery]()
    while True:
        page = await list_deliveries(tx, organization_id, filters, request)
        found += page
        if len(found) >= limit or page.ended_at is None:
            return found[:limit]
        request = PageRequest(limit, page.ended_at)


async def list_deliveries(
    tx: Tx, organization_id: UUID, filters: DeliveryFilter, page: PageRequest
) -> PageRows[Delivery]:
    """Deliveries, newest first. For pages: with a filter that matches few rows, a limited number of rows is scanned."""
    await read_in_index_order(tx)
    return await lists.list_deliveries(tx, organization_id, filters, page)


async def find_details(tx: Tx, organization_id: UUID, delivery_id: UUID | None) -> DeliveryDetails:
    delivery = None if delivery_id is None else await deliveries.find_delivery(tx, organization_id, delivery_id)
    if delivery is None:
        raise DeliveryNotFound("There is no delivery with this id; they are kept for 30 days.")
    return DeliveryDetails(
        delivery,
        await deliveries.find_body(tx, organization_id, delivery.message_id),
        await deliveries.list_attempts(tx, organization_id, delivery.id),
    )


async def count_failed(tx: Tx, organization_id: UUID, endpoint_id: UUID) -> int:
    return await lists.count_failed(tx, organization_id, endpoint_id, most=FAILED_COUNTED_MAX)


async def list_posted(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, since: datetime, limit: int
) -> list[PostedEvent]:
    """The events about changes of a subscription since a time, oldest first."""
    return await lists.list_posted(tx, organization_id, subscription_id, since=since, limit=limit)


async def list_statuses(tx: Tx, organization_id: UUID) -> list[EndpointStatus]:
    """All endpoints; those that need attention come first."""
    found = await _read_statuses(tx, organization_id, await list_endpoints(tx, organization_id))
    return sorted(found, key=lambda one: (not one.needs_attention, one.endpoint.state == "disabled"))


async def find_status(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> EndpointStatus | None:
    chosen = [one for one in await list_endpoints(tx, organization_id) if one.id == endpoint_id]
    found = await _read_statuses(tx, organization_id, chosen)
    return found[0] if found else None


async def count_endpoints_needing_attention(tx: Tx, organization_id: UUID) -> int:
    """Endpoints that fail, were disabled because they did, or wait for approval."""
    return len(await _list_needing_attention(tx, organization_id))


async def list_endpoints_needing_attention(tx: Tx, organization_id: UUID) -> list[EndpointStatus]:
    """The same endpoints, with the number of waiting deliveries."""
    found = await _list_needing_attention(tx, organization_id)
    if not found:
        return []
    await read_in_index_order(tx)
    waiting = await lists.count_waiting(
        tx, organization_id, [endpoint.id for endpoint in found], most=WAITING_COUNTED_MAX + 1
    )
    return [EndpointStatus(endpoint, [], waiting.get(endpoint.id, WaitingDeliveries())) for endpoint in found]


async def _list_needing_attention(tx: Tx, organization_id: UUID) -> list[Endpoint]:
    endpoints = await list_endpoints(tx, organization_id)
    return [one for one in endpoints if EndpointStatus(one, [], WaitingDeliveries()).needs_attention]


async def _read_statuses(tx: Tx, organization_id: UUID, endpoints: list[Endpoint]) -> list[EndpointStatus]:
    if not endpoints:
        return []
    ids = [one.id for one in endpoints]
    await read_in_index_order(tx)
    last = await lists.list_last_outcomes(tx, organization_id, ids, limit=LAST_SHOWN)
    waiting = await lists.count_waiting(tx, organization_id, ids, most=WAITING_COUNTED_MAX + 1)
    return [EndpointStatus(one, last.get(one.id, []), waiting.get(one.id, WaitingDeliveries())) for one in endpoints]
