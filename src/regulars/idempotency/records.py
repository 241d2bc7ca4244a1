"""The stored responses of idempotency keys: found, stored, deleted after 24 hours, and without erased people.

Nothing leads from a person to the responses that contain them, because such an index would cost every write. So an
erasure reads every stored response, newest first, in ranges of time: those of the last 24 hours, and older ones that no
sweep has deleted yet. Each range is one statement and an hour at most, so that none comes near the statement timeout
however many responses a day has. There are few ranges, because each reads the part of the table again that was written
since the last vacuum. A caller without time for a whole day reads as long as it can, and a job continues from there.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from regulars.idempotency import queries
from regulars.idempotency.model import ERASED, RETENTION, Record, change_results
from regulars.kit import failpoint
from regulars.kit.clock import monotonic
from regulars.kit.db import Database, Tx

ROWS_PER_TRANSACTION_MAX = 5_000
# One look finds what many small transactions delete: a look of its own for each would read the deleted rows again.
ROWS_PER_LOOK_MAX = 200_000
# Also more than the time between the moment an answer counts as and its commit.
FIRST_STRETCH = timedelta(minutes=1)
# At 1,000 answers a second, the most that one key may write, an hour of them is read in about 16 seconds.
STRETCH_MAX = timedelta(hours=1)
STRETCH_GROWTH = 4
# The time of a statement grows with each of them.
NEEDLES_PER_STATEMENT_MAX = 4


async def recall(tx: Tx, organization_id: UUID, keys: Collection[str]) -> dict[str, Record]:
    """The records that still hold. Those that expired but were not swept yet make room for their successors."""
    if not keys:
        return {}
    records = await queries.find_records(tx, organization_id, keys)
    expired = [record.key for record in records if record.is_expired(tx.now)]
    if expired:
        await queries.delete_records(tx, organization_id, expired, until=tx.now - RETENTION)
    return {record.key: record for record in records if not record.is_expired(tx.now)}


async def store(tx: Tx, organization_id: UUID, records: Sequence[Record]) -> None:
    """Insert in key order, so that two batches that share keys cannot deadlock on them."""
    if records:
        await queries.insert_records(tx, organization_id, sorted(records, key=lambda record: record.key))


async def sweep(database: Database, organization_id: UUID) -> int:
    """Gives how many were deleted. Its time grows with their number, however many there are."""
    swept = 0
    while True:
        async with database.transaction() as tx:
            until = tx.now - RETENTION
            places = await queries.find_places_of_expired(tx, organization_id, until=until, at_most=ROWS_PER_LOOK_MAX)
        deleted = await _delete(database, organization_id, places, until=until)
        swept += deleted
        # What another transaction holds is left to the next sweep, and must not be looked for again and again.
        if len(places) < ROWS_PER_LOOK_MAX or deleted == 0:
            return swept


async def _delete(database: Database, organization_id: UUID, places: list[str], *, until: datetime) -> int:
    deleted = 0
    for first in range(0, len(places), ROWS_PER_TRANSACTION_MAX):
        async with database.transaction() as tx:
            some = places[first : first + ROWS_PER_TRANSACTION_MAX]
            deleted += await queries.delete_expired(tx, organization_id, some, until=until)
            failpoint.hit("sweep", tx.connection.cut_off)
    return deleted


async def erase_answers(
    tx: Tx,
    organization_id: UUID,
    needles: Sequence[bytes],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    seconds_max: float,
) -> datetime | None:
    """Blank every stored answer in which one of the needles stands; stop after about `seconds_max`.

    Only answers after `since` and not after `until` are looked at. Gives the moment up to which answers are still
    unread, to go on from as `until`, or None when all are read. Without `until` the newest stretch is read in any
    case, with all that was committed up to now.
    """
    oldest = since or await _before_the_oldest(tx, organization_id)
    newest, stretch = until, FIRST_STRETCH
    started = monotonic()
    while True:
        after = max(oldest, (newest or tx.now) - stretch)
        for first in range(0, len(needles), NEEDLES_PER_STATEMENT_MAX):
            some = needles[first : first + NEEDLES_PER_STATEMENT_MAX]
            await queries.blank_bodies(tx, organization_id, some, after=after, until=newest)
            await _blank_results(tx, organization_id, some, after=after, until=newest)
        if after <= oldest:
            return None
        if monotonic() - started >= seconds_max:
            return after
        newest, stretch = after, min(stretch * STRETCH_GROWTH, STRETCH_MAX)


async def _blank_results(
    tx: Tx, organization_id: UUID, needles: Sequence[bytes], *, after: datetime, until: datetime | None
) -> None:
    """Of a batch only the results that hold the person go."""

    def blank(result: bytes) -> bytes:
        return ERASED if any(needle in result for needle in needles) else result

    for key, body in await queries.lock_batches_with(tx, organization_id, needles, after=after, until=until):
        await queries.replace_body(tx, organization_id, key, change_results(body, blank))


async def _before_the_oldest(tx: Tx, organization_id: UUID) -> datetime:
    """The end of the last 24 hours, or a moment before the oldest answer that was not swept."""
    expired = tx.now - RETENTION
    oldest = await queries.find_oldest(tx, organization_id, until=expired)
    return expired if oldest is None else oldest - timedelta.resolution
