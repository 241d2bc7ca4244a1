"""Look at deliveries: the list, and one with what was sent and how each failed attempt went."""

from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.webhooks import queries
from regulars.webhooks.errors import DeliveryNotFound
from regulars.webhooks.model import Attempt, Delivery, DeliveryState

PAGE_MAX: Final = 200


class Details(NamedTuple):
    """`body` is None once the person it spoke of was erased."""

    delivery: Delivery
    body: str | None
    attempts: list[Attempt]


async def list_deliveries(
    tx: Tx,
    organization_id: UUID,
    *,
    endpoint_id: UUID | None = None,
    state: DeliveryState | None = None,
    before: UUID | None = None,
    limit: int = 50,
) -> list[Delivery]:
    """The newest first, from the one before `before` on."""
    return await queries.list_deliveries(
        tx, organization_id, endpoint_id=endpoint_id, state=state, before=before, limit=min(limit, PAGE_MAX)
    )


async def find_details(tx: Tx, organization_id: UUID, delivery_id: UUID | None) -> Details:
    delivery = None if delivery_id is None else await queries.find_delivery(tx, organization_id, delivery_id)
    if delivery is None:
        raise DeliveryNotFound("There is no delivery with this id; they are kept for 30 days.")
    return Details(
        delivery,
        await queries.find_body(tx, organization_id, delivery.message_id),
        await queries.list_attempts(tx, organization_id, delivery.id),
    )
