"""How endpoints fare, and lists of deliveries."""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows, walk_in_order
from regulars.webhooks.browse import queries
from regulars.webhooks.browse.model import Fare, Waiting, Wanted
from regulars.webhooks.manage import list_endpoints
from regulars.webhooks.model import Delivery, Endpoint

LAST_SHOWN: Final = 24
WAITING_COUNTED_MAX: Final = 1_000
FAILED_COUNTED_MAX: Final = 10_000


async def read_fares(tx: Tx, organization_id: UUID) -> list[Fare]:
    """All endpoints, those that need a person first."""
    fares = await _fares(tx, organization_id, await list_endpoints(tx, organization_id))
    return sorted(fares, key=lambda fare: (not fare.needs_a_person, fare.endpoint.state == "disabled"))


async def read_fare(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> Fare | None:
    wanted = [one for one in await list_endpoints(tx, organization_id) if one.id == endpoint_id]
    found = await _fares(tx, organization_id, wanted)
    return found[0] if found else None


async def count_troubled(tx: Tx, organization_id: UUID) -> int:
    """Endpoints that fail, were disabled because they did, or wait for approval."""
    endpoints = await list_endpoints(tx, organization_id)
    return sum(Fare(one, [], Waiting()).needs_a_person for one in endpoints)


async def read_troubled(tx: Tx, organization_id: UUID) -> list[Fare]:
    """The same with how many deliveries wait."""
    endpoints = await list_endpoints(tx, organization_id)
    troubled = [one for one in endpoints if Fare(one, [], Waiting()).needs_a_person]
    if not troubled:
        return []
    await walk_in_order(tx)
    waiting = await queries.count_waiting(
        tx, organization_id, [one.id for one in troubled], most=WAITING_COUNTED_MAX + 1
    )
    return [Fare(one, [], waiting.get(one.id, Waiting())) for one in troubled]


async def list_deliveries(tx: Tx, organization_id: UUID, wanted: Wanted, page: PageRequest) -> PageRows[Delivery]:
    """The newest first."""
    await walk_in_order(tx)
    return await queries.list_deliveries(tx, organization_id, wanted, page)


async def count_failed(tx: Tx, organization_id: UUID, endpoint_id: UUID) -> int:
    return await queries.count_failed(tx, organization_id, endpoint_id, most=FAILED_COUNTED_MAX)


async def _fares(tx: Tx, organization_id: UUID, endpoints: list[Endpoint]) -> list[Fare]:
    if not endpoints:
        return []
    ids = [one.id for one in endpoints]
    await walk_in_order(tx)
    last = await queries.list_last_outcomes(tx, organization_id, ids, limit=LAST_SHOWN)
    waiting = await queries.count_waiting(tx, organization_id, ids, most=WAITING_COUNTED_MAX + 1)
    return [Fare(one, last.get(one.id, []), waiting.get(one.id, Waiting())) for one in endpoints]


class Posted(NamedTuple):
    """An event and how many endpoints it goes to; `delivery_id` is the first of its deliveries."""

    type: str
    created_at: datetime
    deliveries: int
    delivered: int
    delivery_id: UUID | None


async def list_posted(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, since: datetime, limit: int
) -> list[Posted]:
    """What was made of a subscription's changes since a moment, the oldest first."""
    rows = await queries.list_posted(tx, organization_id, subscription_id, since=since, limit=limit)
    return [Posted(*row) for row in rows]
