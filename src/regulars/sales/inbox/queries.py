"""The statements behind the inbox of collisions."""

from typing import Final
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.clock import parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows
from regulars.sales.inbox.model import Attempt, CollisionLine, Review

_LAST_SEEN: Final = Keyset({"t.last_seen_at": parse_timestamp, "t.sales_event_id": UUID}, is_descending=True)


async def list_collisions(
    tx: Tx, organization_id: UUID, page: PageRequest, *, is_reviewed: bool
) -> PageRows[CollisionLine]:
    """Collisions that wait for a person, or those that had one; the last seen first."""
    return await _LAST_SEEN.fetch(
        tx,
        SQL(
            """
            SELECT t.sales_event_id, e.external_id, s.external_id, s.name, t.times_seen, t.last_seen_at, k.contents,
                   t.review, t.note, t.reviewed_by
            FROM (
                SELECT sales_event_id, times_seen, last_seen_at, review, note, reviewed_by
                FROM ticket_collision_totals AS t
                WHERE t.organization_id = %(organization_id)s AND (t.reviewed_at IS NOT NULL) = {is_reviewed}
                  {beyond}
                ORDER BY {ordered}
                LIMIT %(limit)s
            ) AS t
            JOIN LATERAL (
                SELECT external_id, store_id FROM sales_events
                WHERE organization_id = %(organization_id)s AND id = t.sales_event_id LIMIT 1
            ) AS e ON true
            JOIN LATERAL (
                SELECT external_id, name FROM stores
                WHERE organization_id = %(organization_id)s AND id = e.store_id LIMIT 1
            ) AS s ON true
            CROSS JOIN LATERAL (
                SELECT count(*) AS contents FROM ticket_collisions
                WHERE organization_id = %(organization_id)s AND sales_event_id = t.sales_event_id
            ) AS k
            ORDER BY {ordered}
            """
        ),
        page,
        {"organization_id": organization_id},
        make=CollisionLine,
        is_reviewed=SQL("true" if is_reviewed else "false"),
    )


async def count_open(tx: Tx, organization_id: UUID, *, most: int) -> int:
    rows = await tx.fetch(
        """
        SELECT count(*) FROM (
            SELECT FROM ticket_collision_totals
            WHERE organization_id = %s AND reviewed_at IS NULL
            ORDER BY last_seen_at, sales_event_id
            LIMIT %s
        ) AS counted
        """,
        (organization_id, most),
    )
    return int(rows[0][0])


async def find_review(tx: Tx, organization_id: UUID, sales_event_id: UUID) -> Review | None:
    rows = await tx.fetch(
        """
        SELECT times_seen, last_seen_at, reviewed_at, review, note, reviewed_by
        FROM ticket_collision_totals
        WHERE organization_id = %s AND sales_event_id = %s
        """,
        (organization_id, sales_event_id),
    )
    return Review(*rows[0]) if rows else None


async def list_attempts(tx: Tx, organization_id: UUID, sales_event_id: UUID) -> list[Attempt]:
    rows = await tx.fetch(
        """
        SELECT attempt::text, first_seen_at, last_seen_at, times_seen
        FROM ticket_collisions
        WHERE organization_id = %s AND sales_event_id = %s
        ORDER BY first_seen_at, content_hash
        """,
        (organization_id, sales_event_id),
    )
    return [Attempt(*row) for row in rows]


async def write_review(
    tx: Tx, organization_id: UUID, sales_event_id: UUID, *, review: str, note: str | None, reviewed_by: str
) -> bool:
    rows = await tx.fetch(
        """
        UPDATE ticket_collision_totals
        SET reviewed_at = %(now)s, review = %(review)s, note = %(note)s, reviewed_by = %(reviewed_by)s
        WHERE organization_id = %(organization_id)s AND sales_event_id = %(sales_event_id)s
        RETURNING sales_event_id
        """,
        {
            "organization_id": organization_id,
            "sales_event_id": sales_event_id,
            "now": tx.now,
            "review": review,
            "note": note,
            "reviewed_by": reviewed_by,
        },
    )
    return bool(rows)
