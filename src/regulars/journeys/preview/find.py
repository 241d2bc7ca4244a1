"""Find customers to try a text on."""

from typing import NamedTuple
from uuid import UUID

from regulars.journeys.preview import queries
from regulars.kit.db import Tx

_KINDS = {"purchase": "PURCHASE", "return": "RETURN"}
_LOOKED_FOR = 60


class Sample(NamedTuple):
    profile_id: UUID
    sale_id: UUID | None


async def find_samples(
    tx: Tx, organization_id: UUID, trigger: str, *, limit: int, profile_id: UUID | None = None
) -> list[Sample]:
    """Different customers, the last first; or the one named, with their last such sale."""
    kind = _KINDS.get(trigger)
    if profile_id is not None:
        sale = None if kind is None else await queries.find_last_sale(tx, organization_id, profile_id, kind)
        return [Sample(profile_id, sale)]
    if kind is None:
        found = await queries.list_last_subscribers(tx, organization_id, limit=_LOOKED_FOR)
        return [Sample(one, None) for one in dict.fromkeys(found)][:limit]
    by_customer: dict[UUID, UUID] = {}
    for customer, sale_id in await queries.list_last_buyers(tx, organization_id, kind, limit=_LOOKED_FOR):
        by_customer.setdefault(customer, sale_id)
    return [Sample(customer, sale_id) for customer, sale_id in by_customer.items()][:limit]
