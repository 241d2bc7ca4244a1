"""The SQL of the outbox (waiting events) and of its retries."""

import functools
from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Booleans, Ids, JsonTexts, Labels, Timestamps, Uuids
from regulars.kit.columns import Columns, fill
from regulars.kit.db import Tx


class OutboxRow(NamedTuple):
    id: UUID
    topic: str
    payload: str
    created_at: datetime


class RetryRow(NamedTuple):
    id: UUID
    listener: str
    topic: str
    payload: str
    attempts: int


class NewOutboxRow(NamedTuple):
    id: UUID
    topic: str
    payload: str
    on_interest: bool


_OUTBOX: Final = Columns(id=Ids, topic=Labels, payload=JsonTexts, on_interest=Booleans)
_INSERT_OUTBOX: Final = _OUTBOX.write(
    """
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at, not_before)
    SELECT %(organization_id)s, it.id, it.topic, it.payload, %(now)s, COALESCE(%(due_at)s, %(now)s), %(due_at)s
    FROM {rows}
    WHERE NOT it.on_interest OR EXISTS (
        SELECT FROM interests WHERE organization_id = %(organization_id)s AND topic = it.topic
    )
    """
)
_TAKEN: Final = Columns(id=Ids, topic=Labels, payload=JsonTexts, created_at=Timestamps)
_INSERT_RETRIES: Final = _TAKEN.write(
    """
    INSERT INTO outbox_retries (organization_id, listener, attempts, due_at, {columns})
    SELECT %(organization_id)s, %(listener)s, %(attempts)s, %(due_at)s, it.* FROM {rows}
    """
)


async def insert_outbox_rows(
    tx: Tx, organization_id: UUID, rows: Sequence[NewOutboxRow], *, due_at: datetime | None
) -> int:
    """Insert the rows, except those that need a registered interest and have none; return how many were inserted.

    A worker of the previous release reads only `not_before`, so a row that has to wait sets both columns.
    """
    values = {"organization_id": organization_id, "now": tx.now, "due_at": due_at, **_OUTBOX.of(rows)}
    return await tx.execute(_INSERT_OUTBOX, values)


async def take_due_rows(
    tx: Tx,
    organization_id: UUID,
    topics: Sequence[str],
    conditions: tuple[LiteralString, ...],
    *,
    limit: int,
    characters_max: int,
) -> tuple[list[OutboxRow], set[LiteralString]]:
    """Delete and return the oldest due rows that no other worker has locked, up to the one with which their payloads
    exceed `characters_max`; and return those conditions that do not hold for the organization.

    One statement does all of it, because for a single sale each further statement costs more than its own work.
    """
    values = {
        "organization_id": organization_id,
        "topics": list(topics),
        "now": tx.now,
        "limit": limit,
        "characters_max": characters_max,
    }
    rows = await tx.fetch(_take(conditions), values)
    width = len(OutboxRow._fields)
    results = zip(conditions, rows[0][width:], strict=True) if rows else ()
    return [OutboxRow(*row[:width]) for row in rows], {condition for condition, holds in results if not holds}


@functools.cache
def _take(conditions: tuple[LiteralString, ...]) -> LiteralString:
    """Return the statement of `take_due_rows`.

    It reads rows in the order of their ids, of which nearly all are due. `IS TRUE` prevents PostgreSQL's planner from
    reading all due rows by the index on `due_at` and sorting them, which it would do while its statistics show an empty
    table.
    """
    return fill(
        """
        WITH due AS MATERIALIZED (
            SELECT id, length(payload::text) AS characters
            FROM outbox
            WHERE organization_id = %(organization_id)s
              AND topic = ANY (%(topics)s::text[])
              AND (due_at <= %(now)s AND (not_before IS NULL OR not_before <= %(now)s)) IS TRUE
            ORDER BY id
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ), taken AS (
            DELETE FROM outbox
            WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
                SELECT it.id FROM (SELECT id, sum(characters) OVER (ORDER BY id) - characters AS before FROM due) AS it
                WHERE it.before <= %(characters_max)s
            ))
            RETURNING id, topic, payload::text AS payload, created_at
        )
        SELECT {values} FROM taken ORDER BY id
        """,
        values=", ".join((*OutboxRow._fields, *conditions)),
    )


async def find_oldest_row(tx: Tx, organization_id: UUID) -> datetime | None:
    """Return when the oldest due row was recorded."""
    return await tx.fetch_value(
        "SELECT created_at FROM outbox WHERE organization_id = %s AND due_at <= %s ORDER BY id LIMIT 1",
        (organization_id, tx.now),
    )


async def date_rows(tx: Tx, organization_id: UUID, *, before: datetime) -> None:
    await tx.execute(
        "UPDATE outbox SET created_at = %(now)s, due_at = %(now)s"
        " WHERE organization_id = %(organization_id)s AND created_at < %(before)s",
        {"organization_id": organization_id, "now": tx.now, "before": before},
    )


async def delete_rows(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM outbox WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[])",
        {"organization_id": organization_id, "ids": Uuids([identifier.bytes for identifier in ids])},
    )


async def insert_retries(
    tx: Tx, organization_id: UUID, rows: Sequence[OutboxRow], *, listener: str, attempts: int, due_at: datetime | None
) -> None:
    """Store these rows, which were taken from the outbox, for one listener that failed on them, or was blocked."""
    given = {"organization_id": organization_id, "listener": listener, "attempts": attempts, "due_at": due_at}
    await tx.execute(_INSERT_RETRIES, {**given, **_TAKEN.of(rows)})


async def find_listeners_with_retries(tx: Tx, organization_id: UUID, listeners: Sequence[str]) -> list[str]:
    """Return the listeners that have due retries."""
    return await tx.fetch_column(
        """
        SELECT it.listener
        FROM unnest(%(listeners)s::text[]) AS it (listener)
        CROSS JOIN LATERAL (
            SELECT due_at FROM outbox_retries
            WHERE organization_id = %(organization_id)s AND listener = it.listener AND due_at IS NOT NULL
            ORDER BY due_at
            LIMIT 1
        ) AS first
        WHERE first.due_at <= %(now)s
        """,
        {"organization_id": organization_id, "listeners": list(listeners), "now": tx.now},
    )


async def take_due_retries(tx: Tx, organization_id: UUID, listener: str, *, limit: int) -> list[RetryRow]:
    rows = await tx.fetch(
        """
        SELECT id, listener, topic, payload::text, attempts
        FROM outbox_retries
        WHERE organization_id = %(organization_id)s
          AND listener = %(listener)s
          AND due_at <= %(now)s
        ORDER BY due_at, id
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
        """,
        {"organization_id": organization_id, "listener": listener, "now": tx.now, "limit": limit},
    )
    return [RetryRow(*row) for row in rows]


async def delete_vanished_retries(
    tx: Tx, organization_id: UUID, listeners: Sequence[str], *, until: datetime
) -> list[tuple[UUID, str]]:
    """Delete the retries that were due before `until` and whose listener is not one of `listeners`."""
    rows = await tx.fetch(
        """
        DELETE FROM outbox_retries
        WHERE organization_id = %(organization_id)s
          AND listener <> ALL (%(listeners)s::text[])
          AND due_at <= %(until)s
        RETURNING id, listener
        """,
        {"organization_id": organization_id, "listeners": list(listeners), "until": until},
    )
    return [(row[0], row[1]) for row in rows]


async def delete_retries(tx: Tx, organization_id: UUID, rows: Sequence[RetryRow]) -> None:
    await tx.execute(
        """
        DELETE FROM outbox_retries
        WHERE organization_id = %(organization_id)s
          AND (id, listener) IN (SELECT * FROM unnest(%(ids)s::uuid[], %(listeners)s::text[]))
        """,
        {
            "organization_id": organization_id,
            "ids": [row.id for row in rows],
            "listeners": [row.listener for row in rows],
        },
    )


async def postpone_retry(
    tx: Tx, organization_id: UUID, row: RetryRow, *, attempts: int, due_at: datetime | None
) -> None:
    await tx.execute(
        """
        UPDATE outbox_retries SET attempts = %(attempts)s, due_at = %(due_at)s
        WHERE organization_id = %(organization_id)s AND id = %(id)s AND listener = %(listener)s
        """,
        {
            "organization_id": organization_id,
            "id": row.id,
            "listener": row.listener,
            "attempts": attempts,
            "due_at": due_at,
        },
    )


async def lock_rows_with(tx: Tx, organization_id: UUID, topic: str, needles: Sequence[str]) -> list[OutboxRow]:
    """Lock and return the rows of a topic whose payload contains one of the needles."""
    rows = await tx.fetch(
        """
        SELECT id, topic, payload::text, created_at
        FROM outbox
        WHERE organization_id = %(organization_id)s AND topic = %(topic)s
          AND EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS n (needle) WHERE strpos(payload::text, needle) > 0)
        ORDER BY id
        FOR UPDATE
        """,
        {"organization_id": organization_id, "topic": topic, "needles": list(needles)},
    )
    return [OutboxRow(*row) for row in rows]


async def lock_retries_with(tx: Tx, organization_id: UUID, topic: str, needles: Sequence[str]) -> list[RetryRow]:
    """Lock and return the retries of a topic, parked ones included, whose payload contains one of the needles."""
    rows = await tx.fetch(
        """
        SELECT id, listener, topic, payload::text, attempts
        FROM outbox_retries
        WHERE organization_id = %(organization_id)s AND topic = %(topic)s
          AND EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS n (needle) WHERE strpos(payload::text, needle) > 0)
        ORDER BY id, listener
        FOR UPDATE
        """,
        {"organization_id": organization_id, "topic": topic, "needles": list(needles)},
    )
    return [RetryRow(*row) for row in rows]


async def update_payload(tx: Tx, organization_id: UUID, row_id: UUID, payload: str) -> None:
    await tx.execute(
        "UPDATE outbox SET payload = %s::json WHERE organization_id = %s AND id = %s",
        (payload, organization_id, row_id),
    )


async def update_retry_payload(tx: Tx, organization_id: UUID, row: RetryRow, payload: str) -> None:
    await tx.execute(
        "UPDATE outbox_retries SET payload = %s::json WHERE organization_id = %s AND id = %s AND listener = %s",
        (payload, organization_id, row.id, row.listener),
    )
