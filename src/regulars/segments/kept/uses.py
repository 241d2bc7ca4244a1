"""Who asks for a segment. Rooms above register their needs; a segment that is needed is not deleted."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from regulars.kit.db import Tx
from regulars.segments.kept import queries
from regulars.segments.kept.model import SegmentRow, UseRow

READERS_MAX = 100


@dataclass(frozen=True, slots=True)
class Use:
    """Something that asks for a segment: what it is called, its address below the organization, and what a change of
    the segment does to it."""

    label: str
    path: str
    kind: str
    state: str = ""
    effect: str = ""


# For one kind of user: what these ids are called; rooms above tell it through the composition root.
DescribeUses = Callable[[Tx, UUID, Collection[UUID]], Awaitable[Mapping[UUID, Use]]]


async def register_uses(
    tx: Tx, organization_id: UUID, segment_ids: Collection[UUID], *, kind: str, user_id: UUID
) -> None:
    """From now on exactly these segments are asked for by this journey or campaign.

    The lock keeps a segment from being deleted between the look at it and the row that says it is used.
    """
    await queries.lock_segments(tx, organization_id)
    await queries.delete_uses(tx, organization_id, kind=kind, user_id=user_id)
    known = [row[0] for row in await queries.find_current(tx, organization_id, segment_ids)] if segment_ids else []
    if known:
        await queries.insert_uses(tx, organization_id, known, kind=kind, user_id=user_id)


async def find_uses(tx: Tx, organization_id: UUID, segment_ids: Collection[UUID]) -> list[UseRow]:
    return await queries.find_uses(tx, organization_id, segment_ids) if segment_ids else []


async def find_readers(tx: Tx, organization_id: UUID, *, catalog: str, key: str) -> list[SegmentRow]:
    """The segments that read a key of a catalog."""
    if "\0" in key:
        return []
    return await queries.find_segments_reading(tx, organization_id, catalog=catalog, key=key, limit=READERS_MAX)
