"""Remove the email address of a member of staff from answers to customers: servers of earlier releases stored it, with
the time, as the step of the text."""

from datetime import datetime
from uuid import UUID

from regulars.kit.db import Tx


async def rewrite_steps(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    """Make the id of the text its step, and store the user with that address as its author. A text that another
    transaction has locked is left to the next pass."""
    return await tx.execute(
        """
        WITH answers AS (
            SELECT texts.id, users.id AS author_id
            FROM texts LEFT JOIN users ON users.email = regexp_replace(texts.step, ' [^ ]*$', '')
            WHERE texts.organization_id = %(organization_id)s AND texts.created_at <= %(before)s
              AND texts.origin_kind = 'answer' AND strpos(texts.step, ' ') > 0
            ORDER BY texts.created_at
            LIMIT %(limit)s
            FOR UPDATE OF texts SKIP LOCKED
        )
        UPDATE texts SET step = answers.id::text, author_id = answers.author_id FROM answers
        WHERE texts.organization_id = %(organization_id)s AND texts.id = answers.id
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )
