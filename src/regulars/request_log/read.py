"""Read the log: newest first, page by page, of one key or of all."""

from datetime import timedelta
from uuid import UUID

from regulars.kit.db import Tx
from regulars.request_log import queries
from regulars.request_log.model import FAILED_STATUS_MIN, REFUSED_STATUS_MIN, Counts, Entry, Kind

COUNTED_HOURS = 24
_STATUS_MIN = {Kind.ALL: 0, Kind.REFUSED: REFUSED_STATUS_MIN, Kind.FAILED: FAILED_STATUS_MIN}


async def list_answers(
    tx: Tx,
    organization_id: UUID,
    *,
    kind: Kind = Kind.ALL,
    api_key_id: UUID | None = None,
    position: UUID | None = None,
    is_backward: bool = False,
    limit: int,
) -> list[Entry]:
    """The newest answers, from before this one; backwards those after it, the nearest first."""
    wanted = queries.Wanted(api_key_id, _STATUS_MIN[kind], position, is_backward)
    return await queries.list_entries(tx, organization_id, wanted, limit=limit)


async def find_answer(tx: Tx, organization_id: UUID, entry_id: UUID) -> Entry | None:
    return await queries.find_entry(tx, organization_id, entry_id)


async def count_answers(tx: Tx, organization_id: UUID) -> dict[UUID, Counts]:
    """How many answers each key got in the last 24 hours, the one that runs included."""
    return await queries.sum_counts_by_key(tx, organization_id, since=tx.now - timedelta(hours=COUNTED_HOURS))
