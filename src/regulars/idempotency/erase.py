"""Take a person out of the stored answers: the body goes, key and fingerprint stay to their 24 hours."""

from collections.abc import Collection
from uuid import UUID

from regulars.idempotency import queries
from regulars.idempotency.model import RETENTION
from regulars.kit.db import Tx


async def erase_answers(tx: Tx, organization_id: UUID, needles: Collection[bytes]) -> int:
    """Blank every answer of the last 24 hours in which one of the needles stands."""
    return await queries.blank_bodies(tx, organization_id, needles, since=tx.now - RETENTION)
