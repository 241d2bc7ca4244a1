"""Stop and resume the texts of an origin, which is what requested them: here a campaign that is paused or cancelled.

A stop locks the text settings, on which every worker that claims texts for sending takes a shared lock. So after the
stop has committed, no text of the origin is claimed. A text that was claimed before is being sent; if sending fails and
the text would return to the queue, it is ended instead.

A journey is paused in another way (`holds.py`): its origins are the runs of its customers, and the text of a run waits
until the run continues.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final
from uuid import UUID

from regulars.kit.columns import fill
from regulars.kit.db import Tx
from regulars.links.codes import discard_links
from regulars.links.origin_kind import OriginKind
from regulars.texts import text_rows as texts
from regulars.texts.facts import publish_queue_changes
from regulars.texts.model import PRIORITIES, SkipReason, TextRow, TextState
from regulars.texts.outcomes import end_texts, skip_texts
from regulars.texts.queries import claims, settings

# The state that is published for a text that was deleted because its origin is paused; no row has this state.
RETURNED: Final = "returned"
# Texts that did not reach the provider; one that failed with this reason had no connection to it.
_NEVER_DIALLED: Final = "(state IN ('queued', 'skipped') OR (state = 'failed' AND reason = 'not_reached'))"
_LOCK_NEVER_DIALLED: Final = fill(
    """
    SELECT id FROM texts
    WHERE organization_id = %s AND origin_kind = %s AND origin_id = %s AND step = ANY (%s::text[]) AND {never_dialled}
    ORDER BY id
    FOR UPDATE
    """,
    never_dialled=_NEVER_DIALLED,
)
_FIND_DIALLED: Final = fill(
    """
    SELECT FROM texts
    WHERE organization_id = %s AND origin_kind = %s AND origin_id = %s AND {never_dialled} IS NOT TRUE
    LIMIT 1
    """,
    never_dialled=_NEVER_DIALLED,
)


async def stop_origin(
    tx: Tx, organization_id: UUID, kind: OriginKind, origin_id: UUID, *, skip_reason: SkipReason | None
) -> list[str]:
    """Pause or end an origin, and return the steps (for a campaign, the recipients) of its queued texts. Without a skip
    reason the origin is paused: its queued texts are deleted, so that it can request them again. With a skip reason the
    origin has ended: its texts are skipped.

    In the lock order the text settings come before the row of a campaign.
    """
    await settings.lock_settings(tx, organization_id)
    await _upsert_stop(tx, organization_id, origin_id, reason=None if skip_reason is None else skip_reason.value)
    queued = await _lock_queued(tx, organization_id, origin_id, priority=PRIORITIES[kind])
    ids = [text_id for text_id, _ in queued]
    if skip_reason is not None:
        await skip_texts(tx, organization_id, ids, skip_reason)
    elif ids:
        await texts.delete_texts(tx, organization_id, ids)
    return [step for _, step in queued]


async def refuse_claims(tx: Tx, organization_id: UUID, origin_id: UUID) -> None:
    """Pause an origin for a caller that may no longer lock the text settings, because of the lock order. The queued
    texts of the origin are deleted when a worker would claim them; a worker that claims texts now may still send
    some."""
    await _upsert_stop(tx, organization_id, origin_id, reason=None)


async def resume_origin(tx: Tx, organization_id: UUID, origin_id: UUID) -> None:
    """Let the texts of a paused origin be sent again. A cancelled origin remains stopped."""
    await tx.execute(
        "DELETE FROM stopped_origins WHERE organization_id = %s AND origin_id = %s AND reason IS NULL",
        (organization_id, origin_id),
    )


async def delete_texts_of_steps(
    tx: Tx, organization_id: UUID, kind: OriginKind, origin_id: UUID, steps: Collection[str]
) -> None:
    """Delete the texts of these steps that did not reach the provider, so that the origin can request the steps again.
    A text that may have reached it remains, and is not requested again."""
    ids = await tx.fetch_column(_LOCK_NEVER_DIALLED, (organization_id, kind.value, origin_id, list(steps)))
    if ids:
        await discard_links(tx, organization_id, ids)
        await texts.delete_texts(tx, organization_id, ids)


async def has_dialled_texts(tx: Tx, organization_id: UUID, kind: OriginKind, origin_id: UUID) -> bool:
    """Whether a text of the origin reached the provider, or may have."""
    return bool(await tx.fetch(_FIND_DIALLED, (organization_id, kind.value, origin_id)))


async def find_stopped_origins(tx: Tx, organization_id: UUID, rows: Iterable[TextRow]) -> dict[UUID, str | None]:
    """The stopped origins of texts, each with the reason to skip its texts; None if the origin is paused."""
    origin_ids = {row.origin_id for row in rows if row.origin_kind == OriginKind.CAMPAIGN}
    if not origin_ids:
        return {}
    stops = await tx.fetch(
        "SELECT origin_id, reason FROM stopped_origins WHERE organization_id = %s AND origin_id = ANY (%s::uuid[])",
        (organization_id, list(origin_ids)),
    )
    return dict(stops)


async def end_stopped_texts(
    tx: Tx, organization_id: UUID, rows: Sequence[TextRow], *, previous: TextState, owner: UUID | None = None
) -> set[UUID]:
    """End the texts whose origin is stopped, before they are claimed or return to the queue: skip those of a cancelled
    origin, and delete those of a paused origin. Returns the ids of all ended texts.

    `rows` has the texts as they were before their claim, so the number of the claim is `attempts + 1`. With an owner
    (a worker), only texts that this owner still claims are changed.
    """
    stopped = await find_stopped_origins(tx, organization_id, rows)
    to_delete: list[claims.Postponement] = []
    to_skip: list[claims.EndedText] = []
    for row in rows if stopped else ():
        attempt = row.attempts + 1
        if row.origin_id in stopped and (reason := stopped[row.origin_id]) is not None:
            to_skip.append(claims.EndedText(row.id, TextState.SKIPPED.value, reason, attempt=attempt))
        elif row.origin_id in stopped:
            to_delete.append(claims.Postponement(row.id, tx.now, attempt))
    await end_texts(tx, organization_id, to_skip, previous_state=previous.value, owner=owner)
    if to_delete:
        deleted = await claims.delete_texts_in_queue(tx, organization_id, to_delete, owner=owner)
        changed = [row._replace(state=RETURNED) for row in deleted]
        await publish_queue_changes(tx, organization_id, changed, previous_state=previous.value)
    return {row.id for row in rows if row.origin_id in stopped}


async def _upsert_stop(tx: Tx, organization_id: UUID, origin_id: UUID, *, reason: str | None) -> None:
    """Stop an origin: with a reason it is cancelled, otherwise paused. A pause after a cancellation changes nothing."""
    await tx.execute(
        """
        INSERT INTO stopped_origins (organization_id, origin_id, reason, stopped_at)
        VALUES (%(organization_id)s, %(origin_id)s, %(reason)s, %(now)s)
        ON CONFLICT (organization_id, origin_id) DO UPDATE
        SET reason = COALESCE(stopped_origins.reason, EXCLUDED.reason)
        """,
        {"organization_id": organization_id, "origin_id": origin_id, "reason": reason, "now": tx.now},
    )


async def _lock_queued(tx: Tx, organization_id: UUID, origin_id: UUID, *, priority: int) -> list[tuple[UUID, str]]:
    """Lock the queued texts of an origin in the order of their ids, like every transaction that locks several texts;
    return ids and steps.

    OFFSET 0 and ORDER BY make the planner use the index of waiting texts, because the index by origin also contains all
    texts that were ever sent.
    """
    return await tx.fetch(
        """
        SELECT id, step FROM texts
        WHERE organization_id = %(organization_id)s AND state = 'queued' AND id = ANY (ARRAY(
            SELECT waiting.id FROM (
                SELECT id, origin_id FROM texts
                WHERE organization_id = %(organization_id)s AND priority = %(priority)s AND due_at IS NOT NULL
                ORDER BY due_at, id
                OFFSET 0
            ) AS waiting
            WHERE waiting.origin_id = %(origin_id)s
        ))
        ORDER BY id
        FOR UPDATE
        """,
        {"organization_id": organization_id, "priority": priority, "origin_id": origin_id},
    )
