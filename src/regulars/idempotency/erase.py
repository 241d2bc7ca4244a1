"""Take a person out of the stored answers: the body, or the results of a batch, go; the key stays to its 24 hours.

Nothing leads from a person to the answers that hold them, because such an index would cost every write. So every
answer that is still stored is read, newest first, one stretch of time after the other: those of the last 24 hours, and
older ones that no sweep has deleted yet. Each stretch is a statement of its own and an hour at most, so that none comes
near the statement timeout however many answers a day has. There are few of them, because a part of the table that was
written since the last vacuum is read again by each. Whoever has no time for a whole day reads as long as it has, and
somebody else reads on.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from regulars.idempotency import queries
from regulars.idempotency.model import ERASED, RETENTION, change_results
from regulars.kit.clock import monotonic
from regulars.kit.db import Tx

# Also more than the time between the moment an answer counts as and its commit.
FIRST_STRETCH = timedelta(minutes=1)
# At 1,000 answers a second, the most that one key may write, an hour of them is read in about 16 seconds.
STRETCH_MAX = timedelta(hours=1)
STRETCH_GROWTH = 4
# The time of a statement grows with each of them.
NEEDLES_PER_STATEMENT_MAX = 4


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
