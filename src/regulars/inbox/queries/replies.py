"""The SQL of customers' replies, and of phone numbers that get no texts until a user has decided about a reply."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.texts.model import ReplyRow


async def insert_reply_if_new(tx: Tx, organization_id: UUID, reply: ReplyRow) -> bool:
    inserted = await tx.execute(
        """
        INSERT INTO replies
            (organization_id, id, provider, provider_id, number_hash, phone_number, profile_id, body, meaning,
             decided, decided_by, decided_at, due_at, received_at)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
        ON CONFLICT (organization_id, provider, provider_id) DO NOTHING
        """,
        (organization_id, *reply),
    )
    return bool(inserted)


async def decide_reply(tx: Tx, organization_id: UUID, reply_id: UUID, *, decided: str, decided_by: str | None) -> None:
    """Store the decision about a reply, such as `withdrew` or `answered`, and who made it."""
    await tx.execute(
        """
        UPDATE replies
        SET decided = %(decided)s, decided_by = %(decided_by)s, decided_at = %(now)s, due_at = NULL
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {
            "organization_id": organization_id,
            "id": reply_id,
            "decided": decided,
            "decided_by": decided_by,
            "now": tx.now,
        },
    )


async def decide_replies(tx: Tx, organization_id: UUID, number_hash: bytes, *, decided: str, decided_by: str) -> None:
    """Decide all undecided replies of a number together: after a withdrawal there is nothing to decide."""
    await tx.execute(
        """
        UPDATE replies
        SET decided = %(decided)s, decided_by = %(decided_by)s, decided_at = %(now)s, due_at = NULL
        WHERE organization_id = %(organization_id)s AND decided IS NULL AND id = ANY (ARRAY(
            SELECT id FROM replies WHERE organization_id = %(organization_id)s AND number_hash = %(number_hash)s
        ))
        """,
        {
            "organization_id": organization_id,
            "number_hash": number_hash,
            "decided": decided,
            "decided_by": decided_by,
            "now": tx.now,
        },
    )


class OverdueReply(NamedTuple):
    id: UUID
    number_hash: bytes
    due_at: datetime


async def find_overdue(tx: Tx, organization_id: UUID, *, after: OverdueReply | None, limit: int) -> list[OverdueReply]:
    """Replies whose decision is overdue. They are not locked, because the caller must lock the numbers first."""
    return await tx.fetch_all(
        OverdueReply,
        """
        SELECT {columns} FROM replies
        WHERE organization_id = %(organization_id)s AND due_at <= %(now)s
          AND (due_at, id) > (COALESCE(%(after)s, '-infinity'::timestamptz), %(after_id)s::uuid)
        ORDER BY due_at, id
        LIMIT %(limit)s
        """,
        {
            "organization_id": organization_id,
            "now": tx.now,
            "after": None if after is None else after.due_at,
            "after_id": UUID(int=0) if after is None else after.id,
            "limit": limit,
        },
    )


async def take_overdue(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[ReplyRow]:
    """Lock the replies that are still overdue and that no other transaction has locked, and return them."""
    return await tx.fetch_all(
        ReplyRow,
        """
        SELECT {columns} FROM replies
        WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND due_at <= %s
        ORDER BY due_at, id
        FOR UPDATE SKIP LOCKED
        """,
        (organization_id, list(ids), tx.now),
    )


async def end_suppression(tx: Tx, organization_id: UUID, number_hash: bytes) -> None:
    """End the suppression of a number, unless another reply from it still waits for a decision."""
    await tx.execute(
        """
        DELETE FROM suppressions
        WHERE organization_id = %(organization_id)s AND number_hash = %(number_hash)s AND NOT EXISTS (
            SELECT 1 FROM (
                SELECT decided, meaning FROM replies
                WHERE organization_id = %(organization_id)s AND number_hash = %(number_hash)s
                OFFSET 0
            ) AS reply
            WHERE reply.decided IS NULL AND reply.meaning = 'perhaps_stop'
        )
        """,
        {"organization_id": organization_id, "number_hash": number_hash},
    )
