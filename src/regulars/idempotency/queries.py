"""The statements on `idempotency_keys`."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from regulars.idempotency.model import Record, read_headers, write_headers
from regulars.kit.db import Tx


async def find_records(tx: Tx, organization_id: UUID, keys: Collection[str]) -> list[Record]:
    rows = await tx.fetch(
        # One key at a time: before the first ANALYZE a plan for `= ANY` reads the whole organization.
        "SELECT found.key, found.fingerprint, found.status, found.body, found.created_at, found.headers"
        " FROM unnest(%s::text[]) AS wanted (key) CROSS JOIN LATERAL ("
        "   SELECT key, fingerprint, status, body, created_at, headers FROM idempotency_keys"
        "   WHERE organization_id = %s AND key = wanted.key LIMIT 1) AS found",
        (list(keys), organization_id),
    )
    return [
        Record(key, fingerprint, status, body, created_at, read_headers(headers))
        for key, fingerprint, status, body, created_at, headers in rows
    ]


async def insert_records(tx: Tx, organization_id: UUID, records: Sequence[Record]) -> None:
    await tx.execute(
        "INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, headers, created_at)"
        " SELECT %s, key, fingerprint, status, body, headers, %s"
        " FROM unnest(%s::text[], %s::bytea[], %s::smallint[], %s::bytea[], %s::text[])"
        "   AS r (key, fingerprint, status, body, headers)",
        (
            organization_id,
            records[0].created_at,
            [record.key for record in records],
            [record.fingerprint for record in records],
            [record.status for record in records],
            [record.body for record in records],
            [write_headers(record.headers) for record in records],
        ),
    )


async def delete_records(tx: Tx, organization_id: UUID, keys: Collection[str], *, until: datetime) -> None:
    await tx.execute(
        "DELETE FROM idempotency_keys WHERE organization_id = %s AND key = ANY(%s) AND created_at <= %s",
        (organization_id, sorted(keys), until),
    )


async def delete_expired(tx: Tx, organization_id: UUID, *, until: datetime, at_most: int) -> int:
    return await tx.execute(
        "DELETE FROM idempotency_keys WHERE organization_id = %s AND key IN ("
        " SELECT key FROM idempotency_keys WHERE organization_id = %s AND created_at <= %s"
        " LIMIT %s FOR UPDATE SKIP LOCKED)",
        (organization_id, organization_id, until, at_most),
    )


async def blank_bodies(
    tx: Tx, organization_id: UUID, needles: Collection[bytes], *, after: datetime, until: datetime | None
) -> None:
    # Planned each time: whether a stretch of time is few or many of the rows differs from one to the next.
    await tx.connection.execute(
        "UPDATE idempotency_keys SET body = NULL WHERE organization_id = %s"
        " AND created_at > %s AND created_at <= COALESCE(%s, 'infinity'::timestamptz) AND EXISTS ("
        " SELECT FROM unnest(%s::bytea[]) AS n (needle) WHERE position(n.needle IN body) > 0)",
        (organization_id, after, until, list(needles)),
        prepare=False,
    )
