"""Whoever asked for texts ends before they were sent: what still waits is skipped."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging import queries
from regulars.messaging.model import OriginKind, Reason, State
from regulars.messaging.publish import note_changes


async def skip_queued(tx: Tx, organization_id: UUID, kind: OriginKind, origin_ids: Collection[UUID]) -> None:
    """A text that has been claimed is on its way and ends by itself."""
    if not origin_ids:
        return
    waiting = await queries.lock_queued_of(tx, organization_id, origin_kind=kind.value, origin_ids=origin_ids)
    await skip_texts(tx, organization_id, waiting, Reason.LEFT)


async def skip_texts(tx: Tx, organization_id: UUID, text_ids: Collection[UUID], reason: Reason) -> None:
    """The texts are queued, and locked by the caller."""
    if text_ids:
        skipped = [queries.Ended(it, State.SKIPPED.value, reason.value) for it in text_ids]
        await note_changes(tx, organization_id, await queries.end_texts(tx, organization_id, skipped))
