"""Pause the texts of an origin, such as the runs of a journey, and let those go on that are still wanted."""

from collections.abc import Collection, Mapping
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.leave import skip_texts
from regulars.messaging.model import OriginKind, Reason
from regulars.messaging.pause import queries


async def pause_texts(tx: Tx, organization_id: UUID, kind: OriginKind, origin_ids: Collection[UUID]) -> None:
    """A text that has been claimed is on its way; if its sender puts it back, it waits too."""
    if origin_ids:
        await queries.pause_texts(tx, organization_id, origin_kind=kind.value, origin_ids=origin_ids)


async def resume_texts(tx: Tx, organization_id: UUID, kind: OriginKind, steps: Mapping[UUID, str | None]) -> None:
    """`steps` are the origins that go on, each with the step it stands at: the text of another step is not wanted any
    more. The gate judges those that are, as it judges every text."""
    if not steps:
        return
    paused = await queries.resume_texts(tx, organization_id, origin_kind=kind.value, origin_ids=steps.keys())
    expired = [it.id for it in paused if tx.now >= it.expires_at]
    left = [it.id for it in paused if tx.now < it.expires_at and steps[it.origin_id] != it.step]
    await skip_texts(tx, organization_id, expired, Reason.EXPIRED)
    await skip_texts(tx, organization_id, left, Reason.LEFT)
    if len(paused) > len(expired) + len(left):
        tx.touched.add(("texts", organization_id))
