"""What the simulator's phones show."""

from collections.abc import Sequence
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.providers import queries
from regulars.messaging.providers.queries import SimulatedRow


async def read_phone(tx: Tx, organization_id: UUID, phone_number: str, *, limit: int) -> list[SimulatedRow]:
    return await queries.list_simulated(tx, organization_id, phone_number, limit=limit)


async def forget_simulated(tx: Tx, organization_id: UUID, text_ids: Sequence[UUID]) -> None:
    if text_ids:
        await queries.delete_simulated(tx, organization_id, list(text_ids))
