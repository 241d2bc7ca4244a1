"""The SQL of the delivery queue: find endpoints with due deliveries, claim deliveries and write their outcomes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Bigints, Ids, Labels, Texts, Timestamps
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.webhooks.delivery.schedule import Health
from regulars.webhooks.queries.endpoints import EncryptedSecrets


class DueEndpoint(NamedTuple):
    """An enabled endpoint with due deliveries, and how many deliveries this worker and others have claimed of it."""

    id: UUID
    url: str
    secrets: EncryptedSecrets
    first_due_at: datetime
    claimed_here: int
    claimed_elsewhere: int
    health: Health


class DueDelivery(NamedTuple):
    id: UUID
    endpoint_id: UUID
    message_id: UUID
    attempts: int


class DeliveryResult(NamedTuple):
    """The outcome of a claimed delivery; `until` is the deadline of its claim."""

    id: UUID
    until: datetime
    state: str
    attempts: int
    due_at: datetime | None
    duration_ms: int | None
    status: int | None


class NewAttempt(NamedTuple):
    delivery_id: UUID
    number: int
    duration_ms: int
    status: int | None
    error: str
    answer: str | None


async def lock_due_endpoints(tx: Tx, organization_id: UUID, *, owner: UUID, limit: int) -> list[DueEndpoint]:
    """Lock endpoints with due deliveries, the longest waiting first; skip those that another worker has locked."""
    rows = await tx.fetch(
        """
        SELECT e.id, e.url, e.secret, e.old_secret, e.old_secret_until, first.due_at, claimed.here, claimed.elsewhere,
               e.failures, e.failing_since, e.last_success_at, e.is_slow, e.probe_at
        FROM webhook_endpoints e
        CROSS JOIN LATERAL (
            SELECT d.due_at FROM webhook_deliveries d
            WHERE d.organization_id = %(organization_id)s AND d.endpoint_id = e.id AND d.due_at <= %(now)s
            ORDER BY d.due_at LIMIT 1
        ) AS first
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE d.owner = %(owner)s) AS here,
                   count(*) FILTER (WHERE d.owner <> %(owner)s) AS elsewhere
            FROM webhook_deliveries d
            WHERE d.organization_id = %(organization_id)s AND d.endpoint_id = e.id
              AND d.owner IS NOT NULL AND d.due_at > %(now)s
        ) AS claimed
        WHERE e.organization_id = %(organization_id)s AND e.state = 'enabled'
          AND (e.probe_at IS NULL OR e.probe_at <= %(now)s)
        ORDER BY first.due_at, e.id
        LIMIT %(limit)s
        FOR UPDATE OF e SKIP LOCKED
        """,
        {"organization_id": organization_id, "owner": owner, "now": tx.now, "limit": limit},
    )
    return [DueEndpoint(*(*row[:2], EncryptedSecrets(*row[2:5]), *row[5:8], Health(*row[8:]))) for row in rows]


async def lock_due_deliveries(tx: Tx, organization_id: UUID, slots: Sequence[tuple[UUID, int]]) -> list[DueDelivery]:
    """Lock for each endpoint as many due deliveries as it has free slots, in the order they became due."""
    return await tx.fetch_all(
        DueDelivery,
        """
        SELECT due.id, due.endpoint_id, due.message_id, due.attempts
        FROM unnest(%(endpoints)s::uuid[], %(slots)s::integer[]) AS e (id, slots)
        CROSS JOIN LATERAL (
            SELECT d.id, d.endpoint_id, d.message_id, d.attempts FROM webhook_deliveries d
            WHERE d.organization_id = %(organization_id)s AND d.endpoint_id = e.id AND d.due_at <= %(now)s
            ORDER BY d.due_at, d.id
            LIMIT e.slots
            FOR UPDATE SKIP LOCKED
        ) AS due
        """,
        {
            "organization_id": organization_id,
            "endpoints": [endpoint_id for endpoint_id, _ in slots],
            "slots": [count for _, count in slots],
            "now": tx.now,
        },
    )


async def claim_deliveries(tx: Tx, organization_id: UUID, ids: Sequence[UUID], *, owner: UUID, until: datetime) -> None:
    """Claim the deliveries. A row that still has an owner was claimed before and not finished, which is counted."""
    await tx.execute(
        """
        UPDATE webhook_deliveries
        SET owner = %(owner)s, due_at = %(until)s, lapses = lapses + (CASE WHEN owner IS NULL THEN 0 ELSE 1 END)
        WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[])
        """,
        {"organization_id": organization_id, "ids": list(ids), "owner": owner, "until": until},
    )


_RESULTS: Final = Columns(
    id=Ids, until=Timestamps, state=Labels, attempts=Bigints, due_at=Timestamps, duration_ms=Bigints, status=Bigints
)
_UPDATE_DELIVERIES: Final = _RESULTS.write(
    """
    UPDATE webhook_deliveries AS d
    SET state = it.state, attempts = it.attempts, due_at = it.due_at, owner = NULL,
        attempted_at = CASE WHEN it.duration_ms IS NULL THEN d.attempted_at ELSE %(now)s END,
        duration_ms = COALESCE(it.duration_ms, d.duration_ms), answer_status = it.status
    FROM {rows}
    WHERE d.organization_id = %(organization_id)s AND d.id = it.id
      AND d.owner = %(owner)s AND d.due_at = it.until AND d.state = 'pending'
    RETURNING d.id
    """
)


async def write_results(tx: Tx, organization_id: UUID, results: Sequence[DeliveryResult], *, owner: UUID) -> set[UUID]:
    """Write outcomes, except of deliveries that were claimed again or cancelled meanwhile; returns the written ids."""
    values = {"organization_id": organization_id, "owner": owner, "now": tx.now, **_RESULTS.of(results)}
    return set(await tx.fetch_column(_UPDATE_DELIVERIES, values))


_ATTEMPTS: Final = Columns(
    delivery_id=Ids, number=Bigints, duration_ms=Bigints, status=Bigints, error=Texts, answer=Texts
)
_INSERT_ATTEMPTS: Final = _ATTEMPTS.write(
    """
    INSERT INTO webhook_attempts (organization_id, attempted_at, {columns})
    SELECT %(organization_id)s, %(now)s, it.* FROM {rows}
    ON CONFLICT (organization_id, delivery_id, number) DO NOTHING
    """
)


async def insert_attempts(tx: Tx, organization_id: UUID, attempts: Sequence[NewAttempt]) -> None:
    await tx.execute(_INSERT_ATTEMPTS, {"organization_id": organization_id, "now": tx.now, **_ATTEMPTS.of(attempts)})
