"""The SQL statements on `idempotency_keys`, the table of stored responses."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.idempotency.model import BATCH_BEGINNING, StoredResponse, read_headers, write_headers
from regulars.kit.arrays import Bigints, Blobs, Texts
from regulars.kit.columns import Columns
from regulars.kit.db import Tx


async def find_responses(tx: Tx, organization_id: UUID, keys: Collection[str]) -> list[StoredResponse]:
    rows = await tx.fetch(
        # One key at a time: before the first ANALYZE a plan for `= ANY` reads all rows of the organization.
        "SELECT found.key, found.fingerprint, found.status, found.body, found.created_at, found.headers"
        " FROM unnest(%s::text[]) AS wanted (key) CROSS JOIN LATERAL ("
        "   SELECT key, fingerprint, status, body, created_at, headers FROM idempotency_keys"
        "   WHERE organization_id = %s AND key = wanted.key LIMIT 1) AS found",
        (list(keys), organization_id),
    )
    return [
        StoredResponse(key, fingerprint, status, body, created_at, read_headers(headers))
        for key, fingerprint, status, body, created_at, headers in rows
    ]


_RESPONSES: Final = Columns(key=Texts, fingerprint=Blobs, status=Bigints, body=Blobs, headers=(Texts, write_headers))
_INSERT_RESPONSES: Final = _RESPONSES.write(
    "INSERT INTO idempotency_keys (organization_id, created_at, {columns})"
    " SELECT %(organization_id)s, %(created_at)s, it.* FROM {rows}"
)


async def insert_responses(tx: Tx, organization_id: UUID, responses: Sequence[StoredResponse]) -> None:
    await tx.execute(
        _INSERT_RESPONSES,
        {"organization_id": organization_id, "created_at": responses[0].created_at, **_RESPONSES.of(responses)},
    )


async def delete_responses(tx: Tx, organization_id: UUID, keys: Collection[str], *, until: datetime) -> None:
    await tx.execute(
        "DELETE FROM idempotency_keys WHERE organization_id = %s AND key = ANY(%s) AND created_at <= %s",
        (organization_id, sorted(keys), until),
    )


async def find_expired_ctids(tx: Tx, organization_id: UUID, *, until: datetime, rows_max: int) -> list[str]:
    """Return the physical row addresses (ctid) of expired responses."""
    # A bitmap or sequential scan reads each page once; an index scan would read pages in random order.
    await tx.execute("SET LOCAL enable_indexscan = off")
    return await tx.fetch_column(
        "SELECT ctid::text FROM idempotency_keys WHERE organization_id = %s AND created_at <= %s LIMIT %s",
        (organization_id, until, rows_max),
    )


async def delete_expired(tx: Tx, organization_id: UUID, ctids: Sequence[str], *, until: datetime) -> int:
    """Delete the expired responses at these row addresses; an address may have been reused for another response.

    For an organization that its statistics do not contain, PostgreSQL's planner expects one response and may choose a
    nested loop over all responses. With all other scans disabled, it reads the rows by their addresses.
    """
    await tx.execute(
        "SELECT set_config(name, 'off', true) FROM unnest("
        " ARRAY['enable_seqscan', 'enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan']) AS name"
    )
    return await tx.execute(
        "DELETE FROM idempotency_keys WHERE organization_id = %(organization_id)s AND created_at <= %(until)s"
        " AND ctid = ANY(ARRAY(SELECT ctid FROM idempotency_keys"
        "   WHERE organization_id = %(organization_id)s AND created_at <= %(until)s"
        "   AND ctid = ANY(%(ctids)s::text[]::tid[]) FOR UPDATE SKIP LOCKED))",
        {"organization_id": organization_id, "until": until, "ctids": list(ctids)},
    )


async def find_oldest(tx: Tx, organization_id: UUID, *, until: datetime) -> datetime | None:
    """Return the creation time of the oldest response up to a time."""
    rows = await tx.fetch(
        "SELECT min(created_at) FROM idempotency_keys WHERE organization_id = %s AND created_at <= %s",
        (organization_id, until),
    )
    oldest: datetime | None = rows[0][0]
    return oldest


async def blank_bodies(
    tx: Tx, organization_id: UUID, needles: Collection[bytes], *, after: datetime, until: datetime | None
) -> None:
    """Set bodies that contain one of the needles (ids of an erased person) to NULL, except in batch responses."""
    # Not prepared, so that it is planned for each time range: ranges differ in their number of rows.
    await tx.connection.execute(
        "UPDATE idempotency_keys SET body = NULL WHERE organization_id = %s"
        " AND created_at > %s AND created_at <= COALESCE(%s, 'infinity'::timestamptz) AND EXISTS ("
        " SELECT FROM unnest(%s::bytea[]) AS n (needle) WHERE position(n.needle IN body) > 0)"
        " AND substring(body FOR %s) <> %s",
        (organization_id, after, until, list(needles), len(BATCH_BEGINNING), BATCH_BEGINNING),
        prepare=False,
    )


async def lock_batches_with(
    tx: Tx, organization_id: UUID, needles: Collection[bytes], *, after: datetime, until: datetime | None
) -> list[tuple[str, bytes]]:
    """Lock and return the keys and bodies of batch responses that contain one of the needles."""
    cursor = await tx.connection.execute(
        "SELECT key, body FROM idempotency_keys WHERE organization_id = %s"
        " AND created_at > %s AND created_at <= COALESCE(%s, 'infinity'::timestamptz) AND EXISTS ("
        " SELECT FROM unnest(%s::bytea[]) AS n (needle) WHERE position(n.needle IN body) > 0)"
        " AND substring(body FOR %s) = %s ORDER BY key FOR UPDATE",
        (organization_id, after, until, list(needles), len(BATCH_BEGINNING), BATCH_BEGINNING),
        prepare=False,
    )
    return [(key, body) for key, body in await cursor.fetchall()]


async def replace_body(tx: Tx, organization_id: UUID, key: str, body: bytes) -> None:
    await tx.execute(
        "UPDATE idempotency_keys SET body = %s WHERE organization_id = %s AND key = %s", (body, organization_id, key)
    )
