"""Numbers that get nothing until a person has decided what they meant."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.inbox import queries


async def find_suppressed(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> set[bytes]:
    return await queries.find_suppressed(tx, organization_id, number_hashes)
