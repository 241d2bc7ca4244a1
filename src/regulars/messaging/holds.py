"""Stop texts before they are sent: hold all of an organization, pause or cancel those of an origin."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.model import HOLD_POSTPONES_BY, OriginKind, SkipReason
from regulars.messaging.outcomes import skip_texts
from regulars.messaging.queries import claims, settings, texts
from regulars.messaging.settings.store import Texting, save_texting


async def hold(tx: Tx, organization_id: UUID, texting: Texting, *, reason: str) -> Texting:
    """From this commit on nothing is sent except texts that were claimed before it."""
    if texting.is_held:
        return texting
    held = replace(texting, held_since=tx.now, held_reason=reason)
    await save_texting(tx, organization_id, held)
    return held


async def release(tx: Tx, organization_id: UUID, texting: Texting) -> Texting:
    """End the hold: waiting texts that have not expired go through the gate now."""
    released = replace(texting, held_since=None, held_reason=None)
    await save_texting(tx, organization_id, released)
    await claims.make_due(tx, organization_id, not_after=tx.now + HOLD_POSTPONES_BY + timedelta(minutes=1))
    tx.touched.add(("texts", organization_id))
    return released


async def hold_all_organizations(tx: Tx, *, reason: str) -> int:
    """After a restore: texts that were sent since the backup must not be sent again."""
    return await settings.hold_all_organizations(tx, reason=reason)


async def pause_texts(tx: Tx, organization_id: UUID, kind: OriginKind, origin_ids: Collection[UUID]) -> None:
    """Texts stay queued without a due time. A claimed text is being sent; if its sender returns it, it waits too."""
    if origin_ids:
        await texts.pause_texts(tx, organization_id, origin_kind=kind.value, origin_ids=origin_ids)


async def resume_texts(tx: Tx, organization_id: UUID, kind: OriginKind, steps: Mapping[UUID, str | None]) -> None:
    """`steps` are the origins that continue, each with its current step: the text of another step is skipped. The gate
    decides about the others, as about every text."""
    if not steps:
        return
    paused = await texts.resume_texts(tx, organization_id, origin_kind=kind.value, origin_ids=steps.keys())
    expired = [it.id for it in paused if tx.now >= it.expires_at]
    left = [it.id for it in paused if tx.now < it.expires_at and steps[it.origin_id] != it.step]
    await skip_texts(tx, organization_id, expired, SkipReason.EXPIRED)
    await skip_texts(tx, organization_id, left, SkipReason.LEFT)
    if len(paused) > len(expired) + len(left):
        tx.touched.add(("texts", organization_id))


async def cancel_texts(tx: Tx, organization_id: UUID, kind: OriginKind, origin_ids: Collection[UUID]) -> None:
    """Skip the queued texts of origins that have ended. A claimed text is being sent and ends by itself."""
    if origin_ids:
        waiting = await texts.lock_queued_of(tx, organization_id, origin_kind=kind.value, origin_ids=origin_ids)
        await skip_texts(tx, organization_id, waiting, SkipReason.LEFT)
