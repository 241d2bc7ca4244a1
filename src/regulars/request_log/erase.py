"""Take people out of the log: the entries whose path names them go."""

from collections.abc import Sequence
from uuid import UUID

from regulars.kit.db import Tx
from regulars.request_log import queries


async def erase_entries(tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID]) -> None:
    await queries.delete_entries_of_profiles(tx, organization_id, profile_ids)
