"""Find, store, expire and erase the stored responses of idempotency keys.

There is no index from a person to the responses that contain their data, because it would slow down every write. So an
erasure reads every stored response, newest first, in ranges of time: those of the last 24 hours, and older ones that no
sweep has deleted yet. Each range is read by one statement and is at most an hour long, so that none comes near the
statement timeout. There are few ranges, because each statement reads the part of the table again that was written since
the last vacuum. A caller with too little time for all ranges reads as many as it can, and a job continues from there.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from regulars.idempotency import queries
from regulars.idempotency.model import ERASED, RETENTION, StoredResponse, change_results
from regulars.kit import failpoint
from regulars.kit.clock import monotonic
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


async def find_unexpired(tx: Tx, organization_id: UUID, keys: Collection[str]) -> dict[str, StoredResponse]:
    """Return the responses that have not expired, and delete those that have, so that their keys can be used again."""
    if not keys:
        return {}
    responses = await queries.find_responses(tx, organization_id, keys)
    expired = [response.key for response in responses if response.is_expired(tx.now)]
    if expired:
        await queries.delete_responses(tx, organization_id, expired, until=tx.now - RETENTION)
    return {response.key: response for response in responses if not response.is_expired(tx.now)}


async def store_responses(tx: Tx, organization_id: UUID, responses: Sequence[StoredResponse]) -> None:
    """Insert the responses in the order of keys, so that two batches with the same keys cannot deadlock."""
    if responses:
        await queries.insert_responses(tx, organization_id, sorted(responses, key=lambda response: response.key))


async def sweep(database: Database, organization_id: UUID) -> int:
    """Delete expired responses; return how many. The duration grows in proportion to their number."""
    swept = 0
    while True:
        async with database.transaction() as tx:
            until = tx.now - RETENTION
            ctids = await queries.find_expired_ctids(tx, organization_id, until=until, rows_max=ROWS_PER_SCAN_MAX)
        deleted = await _delete(database, organization_id, ctids, until=until)
        swept += deleted
        # If no row was deleted, other transactions have locked all rows; the next sweep deletes them.
        if len(ctids) < ROWS_PER_SCAN_MAX or deleted == 0:
            return swept


async def _delete(database: Database, organization_id: UUID, ctids: list[str], *, until: datetime) -> int:
    deleted = 0
    for first in range(0, len(ctids), ROWS_PER_TRANSACTION_MAX):
        async with database.transaction() as tx:
            batch = ctids[first : first + ROWS_PER_TRANSACTION_MAX]
            deleted += await queries.delete_expired(tx, organization_id, batch, until=until)
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
            await queries.blank_bodies(tx, organization_id, some_needles, after=after, until=range_end)
            await _erase_results(tx, organization_id, some_needles, after=after, until=range_end)
        if after <= oldest:
            return None
        if monotonic() - started >= seconds_max:
            return after
        range_end, length = after, min(length * RANGE_GROWTH, RANGE_MAX)


async def _erase_results(
    tx: Tx, organization_id: UUID, needles: Sequence[bytes], *, after: datetime, until: datetime | None
) -> None:
    """In a batch response, erase only the results that contain the person."""

    def erase_result(result: bytes) -> bytes:
        return ERASED if any(needle in result for needle in needles) else result

    for key, body in await queries.lock_batches_with(tx, organization_id, needles, after=after, until=until):
        await queries.replace_body(tx, organization_id, key, change_results(body, erase_result))


async def _find_start(tx: Tx, organization_id: UUID) -> datetime:
    """Return the start of the last 24 hours, or a time just before the oldest expired response that is still stored."""
    expired = tx.now - RETENTION
    oldest = await queries.find_oldest(tx, organization_id, until=expired)
    return expired if oldest is None else oldest - timedelta.resolution
