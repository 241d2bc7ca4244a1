"""Stop queued texts: hold all texts of an organization, or pause, resume and cancel the texts of origins, which are
customers' runs of a journey. `origins.py` stops the texts of campaigns."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from uuid import UUID

from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts.model import SkipReason, TextState
from regulars.texts.outcomes import skip_texts
from regulars.texts.settings.store import Texting, save_texting


async def hold(tx: Tx, organization_id: UUID, texting: Texting, *, reason: str) -> Texting:
    """Hold all texts of the organization: after the commit none is sent, except texts that a worker claimed before."""
    if texting.is_on_hold:
        return texting
    held = replace(texting, held_since=tx.now, held_reason=reason)
    await save_texting(tx, organization_id, held)
    return held


async def release(tx: Tx, organization_id: UUID, texting: Texting) -> Texting:
    """End the hold: workers now check and send the waiting texts that have not expired."""
    released = replace(texting, held_since=None, held_reason=None)
    await save_texting(tx, organization_id, released)
    # Whatever a queued text waits for, the gate decides again. The texts are due since they were requested, so that a
    # clock that is set back delays none of them.
    await tx.execute(
        """
        UPDATE texts SET due_at = created_at
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND priority IN (0, 1, 2) AND due_at > %(now)s
              AND state = 'queued'
            ORDER BY id
            FOR UPDATE
        ))
        """,
        {"organization_id": organization_id, "now": tx.now},
    )
    # After the commit, the process wakes a worker for the queue of texts.
    tx.queues_to_wake.add(("texts", organization_id))
    return released


async def hold_all_organizations(tx: Tx, *, reason: str) -> int:
    """Hold the texts of all organizations after a restore, so that texts sent since the backup are not sent again."""
    return await tx.execute(
        """
        UPDATE sms_settings SET held_since = COALESCE(held_since, %(now)s), held_reason = %(reason)s
        WHERE organization_id IS NOT NULL
        """,
        {"now": tx.now, "reason": reason},
    )


async def pause_texts(tx: Tx, organization_id: UUID, kind: OriginKind, origin_ids: Collection[UUID]) -> None:
    """Pause queued texts: they have no due time. A text that is being sent keeps the deadline of its claim, and is
    paused if it returns to the queue."""
    if not origin_ids:
        return
    await tx.execute(
        """
        UPDATE texts SET is_paused = true, due_at = CASE WHEN state = 'sending' THEN due_at END
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND origin_kind = %(origin_kind)s
              AND origin_id = ANY (%(origin_ids)s::uuid[]) AND state IN ('queued', 'sending')
            ORDER BY id
            FOR UPDATE
        ))
        """,
        {"organization_id": organization_id, "origin_kind": kind.value, "origin_ids": list(origin_ids)},
    )


async def resume_texts(tx: Tx, organization_id: UUID, kind: OriginKind, steps: Mapping[UUID, str | None]) -> None:
    """Resume the texts of origins; `steps` has the current step of each run. Texts of the current step become due now.
    Expired texts are skipped, and so are texts of other steps, which the customer has left."""
    if not steps:
        return
    resumed = await tx.fetch(
        """
        UPDATE texts SET is_paused = false, due_at = CASE WHEN state = 'queued' THEN created_at ELSE due_at END
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND origin_kind = %(origin_kind)s
              AND origin_id = ANY (%(origin_ids)s::uuid[]) AND is_paused
            ORDER BY id
            FOR UPDATE
        ))
        RETURNING id, origin_id, step, expires_at, state
        """,
        {"organization_id": organization_id, "origin_kind": kind.value, "origin_ids": list(steps)},
    )
    expired: list[UUID] = []
    outdated: list[UUID] = []
    for text_id, origin_id, step, expires_at, state in resumed:
        if state != TextState.QUEUED:
            continue
        if tx.now >= expires_at:
            expired.append(text_id)
        elif steps[origin_id] != step:
            outdated.append(text_id)
        else:
            tx.queues_to_wake.add(("texts", organization_id))
    await skip_texts(tx, organization_id, expired, SkipReason.EXPIRED)
    await skip_texts(tx, organization_id, outdated, SkipReason.LEFT)


async def cancel_texts(tx: Tx, organization_id: UUID, kind: OriginKind, origin_ids: Collection[UUID]) -> None:
    """Skip the queued texts of origins that have ended, because the customer left the journey. A text that is being
    sent is not changed."""
    if origin_ids:
        # Locked in the order of their ids, like every transaction that locks several texts.
        waiting = await tx.fetch_column(
            """
            SELECT id FROM texts
            WHERE organization_id = %s AND origin_kind = %s AND origin_id = ANY (%s::uuid[]) AND state = 'queued'
            ORDER BY id
            FOR UPDATE
            """,
            (organization_id, kind.value, list(origin_ids)),
        )
        await skip_texts(tx, organization_id, waiting, SkipReason.LEFT)
