"""Read endpoints with their recent deliveries, and deliveries with their attempts."""

from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows, walk_in_order
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
    before: UUID | None = None,
    limit: int = 50,
) -> list[Delivery]:
    """The newest first, older than `before`. For commands: a rare state is searched to the end."""
    return await deliveries.list_deliveries(
        tx, organization_id, endpoint_id=endpoint_id, state=state, before=before, limit=min(limit, LIMIT_MAX)
    )


async def list_deliveries(
    tx: Tx, organization_id: UUID, filters: DeliveryFilter, page: PageRequest
) -> PageRows[Delivery]:
    """The newest first. For pages: a rare filter is searched among a bounded number of deliveries."""
    await walk_in_order(tx)
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
    """The events of a subscription's changes since a moment, the oldest first."""
    return await lists.list_posted(tx, organization_id, subscription_id, since=since, limit=limit)


async def list_statuses(tx: Tx, organization_id: UUID) -> list[EndpointStatus]:
    """All endpoints; those that need attention come first."""
    found = await _read_statuses(tx, organization_id, await list_endpoints(tx, organization_id))
    return sorted(found, key=lambda one: (not one.needs_a_person, one.endpoint.state == "disabled"))


async def find_status(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> EndpointStatus | None:
    chosen = [one for one in await list_endpoints(tx, organization_id) if one.id == endpoint_id]
    found = await _read_statuses(tx, organization_id, chosen)
    return found[0] if found else None


async def count_troubled(tx: Tx, organization_id: UUID) -> int:
    """Endpoints that fail, were disabled because they did, or wait for approval."""
    return len(await _list_troubled(tx, organization_id))


async def list_troubled(tx: Tx, organization_id: UUID) -> list[EndpointStatus]:
    """The same with how many deliveries wait."""
    troubled = await _list_troubled(tx, organization_id)
    if not troubled:
        return []
    await walk_in_order(tx)
    waiting = await lists.count_waiting(tx, organization_id, [one.id for one in troubled], most=WAITING_COUNTED_MAX + 1)
    return [EndpointStatus(one, [], waiting.get(one.id, WaitingDeliveries())) for one in troubled]


async def _list_troubled(tx: Tx, organization_id: UUID) -> list[Endpoint]:
    endpoints = await list_endpoints(tx, organization_id)
    return [one for one in endpoints if EndpointStatus(one, [], WaitingDeliveries()).needs_a_person]


async def _read_statuses(tx: Tx, organization_id: UUID, endpoints: list[Endpoint]) -> list[EndpointStatus]:
    if not endpoints:
        return []
    ids = [one.id for one in endpoints]
    await walk_in_order(tx)
    last = await lists.list_last_outcomes(tx, organization_id, ids, limit=LAST_SHOWN)
    waiting = await lists.count_waiting(tx, organization_id, ids, most=WAITING_COUNTED_MAX + 1)
    return [EndpointStatus(one, last.get(one.id, []), waiting.get(one.id, WaitingDeliveries())) for one in endpoints]
