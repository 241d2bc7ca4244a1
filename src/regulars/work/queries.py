"""The SQL of the outbox."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx


class OutboxRow(NamedTuple):
    id: UUID
    topic: str
    payload: str
    attempts: int


class NewOutboxRow(NamedTuple):
    id: UUID
    topic: str
    payload: str


async def insert_outbox_rows(
    tx: Tx, organization_id: UUID, rows: Sequence[NewOutboxRow], *, not_before: datetime | None
) -> None:
    await tx.execute(
        """
        INSERT INTO outbox (organization_id, id, topic, payload, created_at, not_before)
        SELECT %(organization_id)s, row.id, row.topic, row.payload::json, %(now)s, %(not_before)s
        FROM unnest(%(ids)s::uuid[], %(topics)s::text[], %(payloads)s::text[]) AS row (id, topic, payload)
        """,
        {
            "organization_id": organization_id,
            "now": tx.now,
            "not_before": not_before,
            "ids": [row.id for row in rows],
            "topics": [row.topic for row in rows],
            "payloads": [row.payload for row in rows],
        },
    )


async def take_due_rows(tx: Tx, organization_id: UUID, topics: Sequence[str], *, limit: int) -> list[OutboxRow]:
    """The oldest due rows that no other worker holds; they stay locked until the transaction ends."""
    rows = await tx.fetch(
        """
        SELECT id, topic, payload::text, attempts
        FROM outbox
        WHERE organization_id = %(organization_id)s
          AND topic = ANY (%(topics)s::text[])
          AND (not_before IS NULL OR not_before <= %(now)s)
        ORDER BY id
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
        """,
        {"organization_id": organization_id, "topics": list(topics), "now": tx.now, "limit": limit},
    )
    return [OutboxRow(*row) for row in rows]


async def has_due_rows(tx: Tx, organization_id: UUID, topics: Sequence[str]) -> bool:
    rows = await tx.fetch(
        """
        SELECT 1
        FROM outbox
        WHERE organization_id = %(organization_id)s
          AND topic = ANY (%(topics)s::text[])
          AND (not_before IS NULL OR not_before <= %(now)s)
        LIMIT 1
        """,
        {"organization_id": organization_id, "topics": list(topics), "now": tx.now},
    )
    return bool(rows)


async def delete_rows(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM outbox WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[])",
        {"organization_id": organization_id, "ids": list(ids)},
    )


async def postpone_row(tx: Tx, organization_id: UUID, row_id: UUID, *, attempts: int, not_before: datetime) -> None:
    await tx.execute(
        """
        UPDATE outbox SET attempts = %(attempts)s, not_before = %(not_before)s
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "id": row_id, "attempts": attempts, "not_before": not_before},
    )


async def park_row(tx: Tx, organization_id: UUID, row_id: UUID, *, attempts: int) -> None:
    await tx.execute(
        """
        UPDATE outbox SET attempts = %(attempts)s, not_before = 'infinity'
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "id": row_id, "attempts": attempts},
    )
