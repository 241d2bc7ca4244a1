"""One way to stop texts: those of an organization on hold, of a paused journey, and of a paused or cancelled campaign.

A stop is one row, in `stopped_origins` or, for a hold, in `sms_settings`. It is written under the exclusive lock of the
text settings (`lock_claims`), which every transaction that claims texts or advances runs takes in share mode. So after
the commit of a stop nothing more is claimed, and nothing that waits is read for the stop.

A queue that meets a waiting row of a stopped thing sets it aside: the row then waits for the stop, and is not read
again. Resuming makes these rows due again as work of its own (`ResumeQueue`). The texts of a campaign are deleted
instead, in the transaction of the stop, because their unique key would keep the campaign from requesting them anew.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit import failpoint
from regulars.kit.columns import fill
from regulars.kit.db import Database, Tx
from regulars.links.codes import discard_links
from regulars.links.origin_kind import OriginKind
from regulars.texts import text_rows as texts
from regulars.texts.facts import publish_queue_changes
from regulars.texts.model import PRIORITIES, SkipReason, TextRow, TextState
from regulars.texts.outcomes import end_texts, skip_texts
from regulars.texts.queries import claims, settings
from regulars.texts.settings.store import Texting, save_texting
from regulars.work.queue import Due, Queue, WaitLimit

# How many rows a transaction sets aside, or makes due again.
SET_ASIDE_MAX: Final = 2_000
# The state that is published for a text that was deleted because its campaign is paused; no row has this state.
RETURNED: Final = "returned"
# How long a request to stop waits for the locks that the worker has while it handles a batch. On a busy machine the
# worker has them for longer than the usual lock timeout.
_LOCK_TIMEOUT: Final = "5s"
# Texts that did not reach the provider; one that failed with this reason had no connection to it.
_NEVER_DIALLED: Final = "(state IN ('queued', 'skipped') OR (state = 'failed' AND reason = 'not_reached'))"
# Locked in the order of their ids, like in every transaction that locks several texts.
_LOCK: Final = """
    SELECT id, step FROM texts
    WHERE organization_id = %s AND origin_kind = %s AND {condition}
    ORDER BY id
    FOR UPDATE
"""
_LOCK_OF_RUNS: Final = fill(_LOCK, condition="origin_id = ANY (%s::uuid[]) AND state = 'queued'")
_LOCK_QUEUED: Final = fill(_LOCK, condition="origin_id = %s AND step = ANY (%s::text[]) AND state = 'queued'")
_LOCK_NEVER_DIALLED: Final = fill(
    _LOCK, condition="origin_id = %s AND step = ANY (%s::text[]) AND {never_dialled}", never_dialled=_NEVER_DIALLED
)
_FIND_DIALLED: Final = fill(
    """
    SELECT FROM texts
    WHERE organization_id = %s AND origin_kind = %s AND origin_id = %s AND {never_dialled} IS NOT TRUE
    LIMIT 1
    """,
    never_dialled=_NEVER_DIALLED,
)
# The expiry of a text is the next time at which there is something to do.
_SET_ASIDE: Final = fill(
    """
    UPDATE texts
    SET held_by = CASE WHEN %(is_on_hold)s THEN organization_id ELSE document_id END, due_at = expires_at,
        provider = NULL
    WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
        SELECT id FROM texts
        WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[]) AND state = 'queued'
          AND (%(is_on_hold)s OR document_id {remains_stopped})
        FOR UPDATE SKIP LOCKED
    ))
    """,
    remains_stopped=texts.REMAINS_STOPPED,
)
# What was resumed first. While texts are on hold, an earlier release of a hold waits.
_TAKE_RESUMED: Final = """
    SELECT origin_id FROM stopped_origins
    WHERE organization_id = %(organization_id)s AND due_at <= %(now)s AND NOT EXISTS (
        SELECT FROM sms_settings
        WHERE organization_id = %(organization_id)s AND held_since IS NOT NULL
          AND stopped_origins.origin_id = %(organization_id)s
    )
    ORDER BY due_at, origin_id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
"""

# Makes up to `SET_ASIDE_MAX` rows due that wait for a stopped thing, and returns how many.
Release = Callable[[Tx, UUID, UUID], Awaitable[int]]


async def lock_claims(tx: Tx, organization_id: UUID) -> None:
    """Wait for the transactions that claim texts or advance runs, and keep others waiting until this one ends. In the
    lock order this precedes the row of a journey or campaign."""
    await tx.set_lock_timeout(_LOCK_TIMEOUT)
    await settings.lock_settings(tx, organization_id)


async def lock_claims_shared(tx: Tx, organization_id: UUID) -> None:
    """Lock in a transaction that advances runs: a stop comes before it and is seen, or after it."""
    await settings.lock_settings_shared(tx, organization_id)


async def stop(tx: Tx, organization_id: UUID, origin_id: UUID, *, reason: SkipReason | None = None) -> None:
    """Stop a journey or campaign: with a skip reason it is cancelled, otherwise paused. A pause after a cancellation
    changes nothing.

    A caller that may not lock the text settings, because of the lock order, does not have the lock of `lock_claims`:
    then a worker that claims texts now may still send some.
    """
    await _save_stop(tx, organization_id, origin_id, reason=None if reason is None else reason.value, due_at=None)


async def resume(tx: Tx, organization_id: UUID, origin_id: UUID) -> None:
    """End a pause: the worker makes the rows due that were set aside. A cancelled campaign remains stopped."""
    await _save_stop(tx, organization_id, origin_id, reason=None, due_at=tx.now)
    tx.queues_to_wake.add((ResumeQueue.name, organization_id))


async def _save_stop(
    tx: Tx, organization_id: UUID, origin_id: UUID, *, reason: str | None, due_at: datetime | None
) -> None:
    await tx.execute(
        """
        INSERT INTO stopped_origins (organization_id, origin_id, reason, stopped_at, due_at)
        VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT (organization_id, origin_id) DO UPDATE
        SET reason = COALESCE(stopped_origins.reason, EXCLUDED.reason),
            due_at = CASE WHEN stopped_origins.reason IS NULL THEN EXCLUDED.due_at END
        """,
        (organization_id, origin_id, reason, tx.now, due_at),
    )


async def find_stops(tx: Tx, organization_id: UUID, origin_ids: Collection[UUID]) -> dict[UUID, str | None]:
    """Those of the origins that are stopped, each with the reason to skip its texts; None if it is paused."""
    if not origin_ids:
        return {}
    return await tx.fetch_map(
        """
        SELECT origin_id, reason FROM stopped_origins
        WHERE organization_id = %s AND origin_id = ANY (%s::uuid[]) AND due_at IS NULL
        """,
        (organization_id, list(origin_ids)),
    )


async def hold(tx: Tx, organization_id: UUID, texting: Texting, *, reason: str) -> None:
    """Hold all texts of the organization: after the commit none is sent, except texts that a worker claimed before."""
    if not texting.is_on_hold:
        await save_texting(tx, organization_id, replace(texting, held_since=tx.now, held_reason=reason))


async def release(tx: Tx, organization_id: UUID, texting: Texting) -> None:
    """End the hold: workers now check and send the waiting texts that have not expired."""
    await save_texting(tx, organization_id, replace(texting, held_since=None, held_reason=None))
    await resume(tx, organization_id, organization_id)


async def hold_all_organizations(tx: Tx, *, reason: str) -> int:
    """Hold the texts of all organizations after a restore, so that texts sent since the backup are not sent again."""
    return await tx.execute(
        """
        UPDATE sms_settings SET held_since = COALESCE(held_since, %(now)s), held_reason = %(reason)s
        WHERE organization_id IS NOT NULL
        """,
        {"now": tx.now, "reason": reason},
    )


async def set_aside(tx: Tx, organization_id: UUID, met: Sequence[claims.DueText], *, is_on_hold: bool) -> None:
    """Set queued texts aside that a claim met although they are stopped. Texts of a campaign that the worker paused are
    still queued, and are ended instead."""
    of_campaigns = [] if is_on_hold else [it.id for it in met if it.priority == PRIORITIES[OriginKind.CAMPAIGN]]
    if of_campaigns:
        rows = await claims.lock_due_texts(tx, organization_id, of_campaigns)
        await end_stopped_texts(tx, organization_id, rows, previous=TextState.QUEUED)
    await tx.execute(
        _SET_ASIDE,
        {"organization_id": organization_id, "ids": [it.id for it in met], "is_on_hold": is_on_hold},
    )


async def release_texts(tx: Tx, organization_id: UUID, origin_id: UUID) -> int:
    """Make texts due that were set aside. Whatever they waited for before, the gate decides again. They are due since
    they were requested, so that a clock that is set back delays none of them."""
    tx.queues_to_wake.add(("texts", organization_id))
    return await tx.execute(
        """
        UPDATE texts SET held_by = NULL, due_at = created_at
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND held_by = %(origin_id)s
            ORDER BY id
            LIMIT %(limit)s
            FOR UPDATE
        ))
        """,
        {"organization_id": organization_id, "origin_id": origin_id, "limit": SET_ASIDE_MAX},
    )


class ResumeQueue(Queue):
    """Makes the rows due again that were set aside by a pause or a hold which has ended, a batch at a time."""

    name = "stops"
    due = Due(table="stopped_origins", waits=(WaitLimit(at_most=(timedelta(0),)),))

    def __init__(self, *releases: Release) -> None:
        """`releases` are those of tables of other packages, which come before texts in the lock order."""
        self._releases = (*releases, release_texts)

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        async with database.transaction() as tx:
            origin_id = await tx.fetch_value(_TAKE_RESUMED, {"organization_id": organization_id, "now": tx.now})
            if origin_id is None:
                return False
            for make_due in self._releases:
                if await make_due(tx, organization_id, origin_id) == SET_ASIDE_MAX:
                    break
            else:
                await tx.execute(
                    "DELETE FROM stopped_origins WHERE organization_id = %s AND origin_id = %s",
                    (organization_id, origin_id),
                )
            failpoint.hit("stop.resumed", tx.connection.drop_connection)
        return True


async def stop_campaign(
    tx: Tx, organization_id: UUID, campaign_id: UUID, steps: Collection[str], *, skip_reason: SkipReason | None
) -> set[str]:
    """Pause or cancel a campaign, and return those of the steps (its recipients) whose texts were queued. Without a
    skip reason it is paused, and these texts are deleted, so that it can request them again; with one they are
    skipped."""
    await lock_claims(tx, organization_id)
    await stop(tx, organization_id, campaign_id, reason=skip_reason)
    queued = await tx.fetch_map(_LOCK_QUEUED, (organization_id, OriginKind.CAMPAIGN.value, campaign_id, list(steps)))
    if skip_reason is not None:
        await skip_texts(tx, organization_id, queued, skip_reason)
    elif queued:
        await texts.delete_texts(tx, organization_id, queued)
    return set(queued.values())


async def end_stopped_texts(
    tx: Tx, organization_id: UUID, rows: Sequence[TextRow], *, previous: TextState, owner: UUID | None = None
) -> set[UUID]:
    """End the texts whose campaign is stopped: skip those of a cancelled campaign, and delete those of a paused one.
    Returns the ids of all ended texts. A text of a journey returns to the queue, which sets it aside.

    `rows` has the texts as they were before their claim, so the number of the claim is `attempts + 1`. With an owner
    (a worker), only texts that this owner still claims are changed.
    """
    stops = await find_stops(tx, organization_id, {row.origin_id for row in rows})
    to_skip: list[claims.EndedText] = []
    to_delete: list[claims.Postponement] = []
    stopped = [row for row in rows if row.origin_id in stops]
    for row in stopped:
        if (reason := stops[row.origin_id]) is None:
            to_delete.append(claims.Postponement(row.id, tx.now, row.attempts + 1))
        else:
            to_skip.append(claims.EndedText(row.id, TextState.SKIPPED.value, reason, attempt=row.attempts + 1))
    await end_texts(tx, organization_id, to_skip, previous_state=previous.value, owner=owner)
    if to_delete:
        deleted = await claims.delete_texts_in_queue(tx, organization_id, to_delete, owner=owner)
        changed = [row._replace(state=RETURNED) for row in deleted]
        await publish_queue_changes(tx, organization_id, changed, previous_state=previous.value)
    return {row.id for row in stopped}


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


async def cancel_texts(tx: Tx, organization_id: UUID, origin_ids: Collection[UUID]) -> None:
    """Skip the queued texts of a journey's runs that have ended, because the customer left the journey. A text that is
    being sent is not changed."""
    if origin_ids:
        waiting = await tx.fetch_column(_LOCK_OF_RUNS, (organization_id, OriginKind.JOURNEY.value, list(origin_ids)))
        await skip_texts(tx, organization_id, waiting, SkipReason.LEFT)
