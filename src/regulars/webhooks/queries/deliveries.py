"""The SQL of messages and their deliveries; the statements of the delivery queue are in `claims`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit.arrays import Booleans, Ids, Labels, Texts
from regulars.kit.columns import Columns, fill
from regulars.kit.db import Tx
from regulars.webhooks.model import Delivery, FailedAttempt, Message, ReplayCandidate

_MESSAGES: Final = Columns(id=Ids, type=Labels, body=Texts, profile_id=Ids, subscription_id=Ids, of_erasure=Booleans)
_INSERT_MESSAGES: Final = _MESSAGES.write(
    """
    INSERT INTO webhook_messages (organization_id, created_at, {columns})
    SELECT %(organization_id)s, %(now)s, it.* FROM {rows}
    """
)


async def insert_messages(tx: Tx, organization_id: UUID, messages: Sequence[Message]) -> None:
    await tx.execute(_INSERT_MESSAGES, {"organization_id": organization_id, "now": tx.now, **_MESSAGES.of(messages)})


_DELIVERIES: Final = Columns(id=Ids, endpoint_id=Ids, message_id=Ids)
_INSERT_DELIVERIES: Final = _DELIVERIES.write(
    """
    INSERT INTO webhook_deliveries (organization_id, state, due_at, created_at, is_replay, {columns})
    SELECT %(organization_id)s, 'pending', %(now)s, %(now)s, %(is_replay)s, it.* FROM {rows}
    """
)


async def insert_deliveries(
    tx: Tx, organization_id: UUID, deliveries: Sequence[tuple[UUID, UUID, UUID]], *, is_replay: bool = False
) -> None:
    """Insert deliveries of (id, endpoint, message), due now."""
    values = _DELIVERIES.of_tuples(deliveries)
    await tx.execute(
        _INSERT_DELIVERIES, {"organization_id": organization_id, "now": tx.now, "is_replay": is_replay, **values}
    )


async def find_delivery(tx: Tx, organization_id: UUID, delivery_id: UUID) -> Delivery | None:
    return await tx.fetch_first(
        Delivery,
        """
        SELECT d.id, d.endpoint_id, d.message_id, m.type, d.state, d.attempts, d.lapses, d.due_at, d.created_at,
               d.attempted_at, d.duration_ms, d.answer_status, d.is_replay
        FROM webhook_deliveries d
        JOIN webhook_messages m ON m.organization_id = %(organization_id)s AND m.id = d.message_id
        WHERE d.organization_id = %(organization_id)s AND d.id = %(id)s
        """,
        {"organization_id": organization_id, "id": delivery_id},
    )


async def find_body(tx: Tx, organization_id: UUID, message_id: UUID) -> str | None:
    return await tx.fetch_value(
        "SELECT body FROM webhook_messages WHERE organization_id = %s AND id = %s", (organization_id, message_id)
    )


async def list_attempts(tx: Tx, organization_id: UUID, delivery_id: UUID) -> list[FailedAttempt]:
    return await tx.fetch_all(
        FailedAttempt,
        "SELECT {columns} FROM webhook_attempts WHERE organization_id = %s AND delivery_id = %s ORDER BY number",
        (organization_id, delivery_id),
    )


_TO_REPLAY: Final = """
SELECT d.id, d.message_id, d.created_at,
       EXISTS (
           SELECT FROM webhook_messages m
           WHERE m.organization_id = %(organization_id)s AND m.id = d.message_id AND m.body IS NOT NULL
       ) AND NOT (%(only_failed)s AND EXISTS (
           SELECT FROM webhook_deliveries o
           WHERE o.organization_id = %(organization_id)s AND o.message_id = d.message_id
             AND o.endpoint_id = %(endpoint_id)s AND o.state <> 'failed'
       ))
FROM (
    SELECT id, message_id, created_at FROM webhook_deliveries
    WHERE organization_id = %(organization_id)s AND endpoint_id = %(endpoint_id)s
      AND id > %(after)s AND id < %(until)s {failed_condition}
    ORDER BY id
    LIMIT %(limit)s
) AS d
ORDER BY d.id
"""


async def list_deliveries_to_replay(
    tx: Tx,
    organization_id: UUID,
    endpoint_id: UUID,
    *,
    after: UUID,
    until: UUID,
    only_failed: bool,
    limit: int,
) -> list[ReplayCandidate]:
    """Return the next deliveries of the endpoint, ordered by id; those whose message has no body cannot be sent.

    With `only_failed`, neither can messages of which another delivery to the endpoint has succeeded or still waits.
    """
    statement = fill(
        _TO_REPLAY,
        failed_condition="AND state = 'failed'" if only_failed else "",
    )
    return await tx.fetch_all(
        ReplayCandidate,
        statement,
        {
            "organization_id": organization_id,
            "endpoint_id": endpoint_id,
            "after": after,
            "until": until,
            "only_failed": only_failed,
            "limit": limit,
        },
    )


async def find_old_messages(tx: Tx, organization_id: UUID, *, until: datetime, limit: int) -> list[UUID]:
    return await tx.fetch_column(
        "SELECT id FROM webhook_messages WHERE organization_id = %s AND created_at <= %s"
        " ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED",
        (organization_id, until, limit),
    )
