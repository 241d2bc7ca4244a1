"""Recomputes credits of purchases to texts: enqueues the customers of all texts of the last 60 days, page by page."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.attribution.due_customers import make_due_by_credited_texts, make_due_by_texts
from regulars.attribution.model import FROZEN_AFTER
from regulars.attribution.queries import TEXT_WAITED_MAX
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at

RECOMPUTE_QUEUE: Final = "attribution.recompute"
TEXTS_PER_PASS: Final = 2_000


class Recompute(NamedTuple):
    """A row of `attribution_recomputes`: the texts after the id `walked_to` up to `until` are still to be processed.
    Credits that were final at `since` do not change."""

    since: datetime
    walked_to: UUID
    until: UUID
    # How many texts were processed.
    texts: int
    due_at: datetime | None
    attempts: int
    requested_at: datetime
    requested_by: str | None


async def request_recompute(tx: Tx, organization_id: UUID, *, by: str | None) -> None:
    """Request that the credits of all texts of the last 60 days are computed. A running recomputation starts again,
    and includes older texts that it has not reached yet."""
    await tx.execute(
        """
        INSERT INTO attribution_recomputes AS r
            (organization_id, since, walked_to, until, due_at, requested_at, requested_by)
        VALUES (%(organization_id)s, %(now)s, %(first)s, %(last)s, %(now)s, %(now)s, %(by)s)
        ON CONFLICT (organization_id) DO UPDATE
        SET since = CASE WHEN r.due_at IS NULL THEN EXCLUDED.since ELSE least(r.since, EXCLUDED.since) END,
            walked_to = CASE WHEN r.due_at IS NULL THEN EXCLUDED.walked_to
                             ELSE least(r.walked_to, EXCLUDED.walked_to) END,
            until = EXCLUDED.until, texts = 0, due_at = EXCLUDED.due_at, attempts = 0,
            requested_at = EXCLUDED.requested_at, requested_by = EXCLUDED.requested_by
        """,
        {
            "organization_id": organization_id,
            "now": tx.now,
            # The id of a text has the time of its request; a text that was sent since may have waited.
            "first": first_id_at(tx.now - FROZEN_AFTER - TEXT_WAITED_MAX),
            "last": first_id_at(tx.now),
            "by": by,
        },
    )
    tx.queues_to_wake.add((RECOMPUTE_QUEUE, organization_id))


async def find_recompute(tx: Tx, organization_id: UUID) -> Recompute | None:
    """The last requested recomputation; it is complete if its `due_at` is None."""
    return await tx.fetch_first(
        Recompute,
        "SELECT {columns} FROM attribution_recomputes WHERE organization_id = %s",
        (organization_id,),
    )


async def count_waiting(tx: Tx, organization_id: UUID, *, limit: int) -> int:
    """Count the customers whose credits wait to be computed; stops at `limit`."""
    return await tx.fetch_count(
        """
        SELECT count(*) FROM (
            SELECT FROM attribution_customers WHERE organization_id = %s AND due_at IS NOT NULL LIMIT %s
        ) AS waiting
        """,
        (organization_id, limit),
    )


async def take_recompute(tx: Tx, organization_id: UUID) -> list[Recompute]:
    return await tx.fetch_all(
        Recompute,
        """
        SELECT {columns} FROM attribution_recomputes WHERE organization_id = %s AND due_at <= %s
        FOR UPDATE SKIP LOCKED
        """,
        (organization_id, tx.now),
    )


async def process_page(tx: Tx, organization_id: UUID, recompute: Recompute) -> None:
    """Enqueue the customers of the next page of texts, and save the progress."""
    ids = await _list_text_ids(tx, organization_id, after=recompute.walked_to, until=recompute.until)
    if ids:
        await make_due_by_credited_texts(tx, organization_id, ids, since=recompute.since)
        await make_due_by_texts(tx, organization_id, ids, since=recompute.since)
    await tx.execute(
        """
        UPDATE attribution_recomputes SET walked_to = %s, texts = texts + %s, due_at = %s, attempts = 0
        WHERE organization_id = %s
        """,
        (
            ids[-1] if ids else recompute.until,
            len(ids),
            tx.now if len(ids) == TEXTS_PER_PASS else None,
            organization_id,
        ),
    )


async def _list_text_ids(tx: Tx, organization_id: UUID, *, after: UUID, until: UUID) -> Sequence[UUID]:
    return await tx.fetch_column(
        "SELECT id FROM texts WHERE organization_id = %s AND id > %s AND id <= %s ORDER BY id LIMIT %s",
        (organization_id, after, until, TEXTS_PER_PASS),
    )
