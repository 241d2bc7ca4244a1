"""How large segments were on each day: the last count of a day is the one that stays. Of a version it is the first."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.segments.kept import queries
from regulars.segments.kept.model import SizeRow

DAYS_SHOWN: Final = 90
DAYS_KEPT: Final = 400


async def keep_size(
    tx: Tx, organization_id: UUID, segment_id: UUID, *, version: int, total: int, may_be_texted: int
) -> None:
    """A count of a version that is no longer the last, or of a segment that was deleted meanwhile, is nobody's."""
    day = await queries.find_today(tx, organization_id)
    row = SizeRow(day, version, total, may_be_texted, tx.now)
    # The version before the segment, as a deletion takes them: whoever comes second waits, and nobody for ever.
    await queries.update_version_total_if_none(tx, organization_id, segment_id, version=version, total=total)
    await queries.upsert_size_if_current(tx, organization_id, segment_id, row)
    await queries.delete_old_sizes(tx, organization_id, segment_id, before=day - timedelta(days=DAYS_KEPT))


async def list_sizes(tx: Tx, organization_id: UUID, segment_id: UUID) -> list[SizeRow]:
    """The oldest first."""
    found = await queries.list_sizes(tx, organization_id, segment_id, limit=DAYS_SHOWN)
    return list(reversed(found))


async def find_last_sizes(tx: Tx, organization_id: UUID, segment_ids: Collection[UUID]) -> dict[UUID, SizeRow]:
    return dict(await queries.find_last_sizes(tx, organization_id, segment_ids)) if segment_ids else {}
