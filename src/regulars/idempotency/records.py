"""Find, store, expire and erase the stored responses of idempotency keys.

There is no index from a person to the responses that contain their data, because it would slow down every write. So an
erasure reads every stored response, newest first, in ranges of time: those of the last 24 hours, and older ones that no
sweep has deleted yet. Each range is read by one statement and is at most an hour long, so that none comes near the
statement timeout. There are few ranges, because each statement reads the part of the table again that was written since
the last vacuum. A caller with too little time for all ranges reads as many as it can, and a job continues from there.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final, LiteralString
from uuid import UUID

from regulars.idempotency.model import (
    BATCH_BEGINNING,
    ERASED,
    RETENTION,
    StoredResponse,
    change_results,
    read_headers,
    write_headers,
)
from regulars.kit import failpoint
from regulars.kit.arrays import Bigints, Blobs, Texts
from regulars.kit.clock import monotonic
from regulars.kit.columns import Columns, fill
from regulars.kit.db import Database, Tx

ROWS_PER_TRANSACTION_MAX = 5_000
# One scan finds the rows that many small transactions delete, because a scan for each transaction would read the
# deleted rows again.
ROWS_PER_SCAN_MAX = 200_000
# Longer than the time from a response's timestamp to its commit; the length of the newest range, which is read first.
COMMIT_TIME_MAX = timedelta(minutes=1)
# At 1,000 responses a second, the rate limit of a key, an hour is read in about 16 seconds.
RANGE_MAX = timedelta(hours=1)
# Each range is this many times as long as the one before, up to `RANGE_MAX`.
RANGE_GROWTH = 4
# Needles are the byte strings (ids of an erased person) to search for in responses. A statement takes longer with more
# of them.
NEEDLES_PER_STATEMENT_MAX = 4

_RESPONSES: Final = Columns(key=Texts, fingerprint=Blobs, status=Bigints, body=Blobs, headers=(Texts, write_headers))
_INSERT_RESPONSES: Final = _RESPONSES.write(
    "INSERT INTO idempotency_keys (organization_id, created_at, {columns})"
    " SELECT %(organization_id)s, %(created_at)s, it.* FROM {rows}"
)
# The conditions for responses of a range of time that contain one of the needles.
_AND_WITH_NEEDLES: Final[LiteralString] = (
    " AND created_at > %(after)s AND created_at <= COALESCE(%(until)s, 'infinity'::timestamptz)"
    " AND EXISTS (SELECT FROM unnest(%(needles)s::bytea[]) AS n (needle) WHERE position(n.needle IN body) > 0)"
    " AND substring(body FOR %(beginning_bytes)s)"
)
_BLANK_BODIES: Final = fill(
    "UPDATE idempotency_keys SET body = NULL"
    " WHERE organization_id = %(organization_id)s {and_with_needles} <> %(beginning)s",
    and_with_needles=_AND_WITH_NEEDLES,
)
_LOCK_BATCHES: Final = fill(
    "SELECT key, body FROM idempotency_keys"
    " WHERE organization_id = %(organization_id)s {and_with_needles} = %(beginning)s ORDER BY key FOR UPDATE",
    and_with_needles=_AND_WITH_NEEDLES,
)


async def find_unexpired(tx: Tx, organization_id: UUID, keys: Collection[str]) -> dict[str, StoredResponse]:
    """Return the responses that have not expired, and delete those that have, so that their keys can be used again."""
    if not keys:
        return {}
    rows = await tx.fetch(
        # One key at a time: before the first ANALYZE a plan for `= ANY` reads all rows of the organization.
        "SELECT found.key, found.fingerprint, found.status, found.body, found.created_at, found.headers"
        " FROM unnest(%s::text[]) AS wanted (key) CROSS JOIN LATERAL ("
        "   SELECT key, fingerprint, status, body, created_at, headers FROM idempotency_keys"
        "   WHERE organization_id = %s AND key = wanted.key LIMIT 1) AS found",
        (list(keys), organization_id),
    )
    responses = [
        StoredResponse(key, fingerprint, status, body, created_at, read_headers(headers))
        for key, fingerprint, status, body, created_at, headers in rows
    ]
    expired = sorted(response.key for response in responses if response.is_expired(tx.now))
    if expired:
        await tx.execute(
            "DELETE FROM idempotency_keys WHERE organization_id = %s AND key = ANY(%s) AND created_at <= %s",
            (organization_id, expired, tx.now - RETENTION),
        )
    return {response.key: response for response in responses if not response.is_expired(tx.now)}


async def store_responses(tx: Tx, organization_id: UUID, responses: Sequence[StoredResponse]) -> None:
    """Insert the responses in the order of keys, so that two batches with the same keys cannot deadlock."""
    if responses:
        values = _RESPONSES.of(sorted(responses, key=lambda response: response.key))
        created_at = responses[0].created_at
        await tx.execute(_INSERT_RESPONSES, {"organization_id": organization_id, "created_at": created_at, **values})


async def sweep(database: Database, organization_id: UUID) -> int:
    """Delete expired responses; return how many. The duration grows in proportion to their number."""
    swept = 0
    while True:
        async with database.transaction() as tx:
            until = tx.now - RETENTION
            # A bitmap or sequential scan reads each page once; an index scan would read pages in random order.
            await tx.execute("SET LOCAL enable_indexscan = off")
            # The physical row addresses (ctid) of expired responses.
            ctids = await tx.fetch_column(
                "SELECT ctid::text FROM idempotency_keys WHERE organization_id = %s AND created_at <= %s LIMIT %s",
                (organization_id, until, ROWS_PER_SCAN_MAX),
            )
        deleted = await _delete(database, organization_id, ctids, until=until)
        swept += deleted
        # If no row was deleted, other transactions have locked all rows; the next sweep deletes them.
        if len(ctids) < ROWS_PER_SCAN_MAX or deleted == 0:
            return swept


async def _delete(database: Database, organization_id: UUID, ctids: list[str], *, until: datetime) -> int:
    """Delete the expired responses at these row addresses; an address may have been reused for another response.

    For an organization that its statistics do not contain, PostgreSQL's planner expects one response and may choose a
    nested loop over all responses. With all other scans disabled, it reads the rows by their addresses.
    """
    deleted = 0
    for first in range(0, len(ctids), ROWS_PER_TRANSACTION_MAX):
        async with database.transaction() as tx:
            batch = ctids[first : first + ROWS_PER_TRANSACTION_MAX]
            await tx.execute(
                "SELECT set_config(name, 'off', true) FROM unnest("
                " ARRAY['enable_seqscan', 'enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan']) AS name"
            )
            deleted += await tx.execute(
                "DELETE FROM idempotency_keys WHERE organization_id = %(organization_id)s AND created_at <= %(until)s"
                " AND ctid = ANY(ARRAY(SELECT ctid FROM idempotency_keys"
                "   WHERE organization_id = %(organization_id)s AND created_at <= %(until)s"
                "   AND ctid = ANY(%(ctids)s::text[]::tid[]) FOR UPDATE SKIP LOCKED))",
                {"organization_id": organization_id, "until": until, "ctids": batch},
            )
            failpoint.hit("sweep", tx.connection.drop_connection)
    return deleted


async def erase_bodies(
    tx: Tx,
    organization_id: UUID,
    needles: Sequence[bytes],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    seconds_max: float,
) -> datetime | None:
    """Erase the body of every stored response that contains one of the needles; stop after about `seconds_max`.

    The responses after `since` and up to `until` are read, newest first. Return the time up to which responses are
    still unread, to pass as `until` of the next call, or None when all are read. Without `until` at least the newest
    range is read, up to the last committed response.
    """
    oldest = since or await _find_start(tx, organization_id)
    range_end, length = until, COMMIT_TIME_MAX
    started = monotonic()
    while True:
        after = max(oldest, (range_end or tx.now) - length)
        for first in range(0, len(needles), NEEDLES_PER_STATEMENT_MAX):
            some_needles = needles[first : first + NEEDLES_PER_STATEMENT_MAX]
            await _erase_range(tx, organization_id, some_needles, after=after, until=range_end)
        if after <= oldest:
            return None
        if monotonic() - started >= seconds_max:
            return after
        range_end, length = after, min(length * RANGE_GROWTH, RANGE_MAX)


async def _erase_range(
    tx: Tx, organization_id: UUID, needles: Sequence[bytes], *, after: datetime, until: datetime | None
) -> None:
    """Erase the bodies that contain one of the needles; in a batch response, only the results that contain one."""

    def erase_result(result: bytes) -> bytes:
        return ERASED if any(needle in result for needle in needles) else result

    values = {
        "organization_id": organization_id,
        "needles": list(needles),
        "after": after,
        "until": until,
        "beginning": BATCH_BEGINNING,
        "beginning_bytes": len(BATCH_BEGINNING),
    }
    # Not prepared, so that they are planned for each time range: ranges differ in their number of rows.
    await tx.connection.execute(_BLANK_BODIES, values, prepare=False)
    batches = await tx.connection.execute(_LOCK_BATCHES, values, prepare=False)
    for key, body in await batches.fetchall():
        await tx.execute(
            "UPDATE idempotency_keys SET body = %s WHERE organization_id = %s AND key = %s",
            (change_results(body, erase_result), organization_id, key),
        )


async def _find_start(tx: Tx, organization_id: UUID) -> datetime:
    """Return the start of the last 24 hours, or a time just before the oldest expired response that is still stored."""
    expired = tx.now - RETENTION
    oldest = await tx.fetch_value(
        "SELECT min(created_at) FROM idempotency_keys WHERE organization_id = %s AND created_at <= %s",
        (organization_id, expired),
    )
    return expired if oldest is None else oldest - timedelta.resolution
