"""Read the log: newest first, page by page, of one key or of all."""

from datetime import timedelta
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows
from regulars.request_log import queries
from regulars.request_log.model import FAILED_STATUS_MIN, REFUSED_STATUS_MIN, Counts, Entry, Kind

COUNTED_HOURS = 24
_STATUS_MIN = {Kind.ALL: 0, Kind.REFUSED: REFUSED_STATUS_MIN, Kind.FAILED: FAILED_STATUS_MIN}


async def list_answers(
    tx: Tx, organization_id: UUID, page: PageRequest, *, kind: Kind = Kind.ALL, api_key_id: UUID | None = None
) -> PageRows[Entry]:
    """The newest first."""
    return await queries.list_entries(tx, organization_id, page, api_key_id=api_key_id, status_min=_STATUS_MIN[kind])


async def find_answer(tx: Tx, organization_id: UUID, entry_id: UUID) -> Entry | None:
    return await queries.find_entry(tx, organization_id, entry_id)


async def count_answers(tx: Tx, organization_id: UUID) -> dict[UUID, Counts]:
    """How many answers each key got in the last 24 hours, the one that runs included."""
    return await queries.sum_counts_by_key(tx, organization_id, since=tx.now - timedelta(hours=COUNTED_HOURS))
