"""Take a person out of the stored answers: the body goes, key and fingerprint stay to their 24 hours.

Nothing leads from a person to the answers that hold them, because such an index would cost every write. So the answers
of the last 24 hours are read, newest first, one stretch of time after the other. Each stretch is a statement of its
own, and the next one is longer or shorter as this one was quick or slow: none comes near the statement timeout,
however many answers a day has. Whoever has no time for a whole day reads as long as it has, and somebody else reads on.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from regulars.idempotency import queries
from regulars.idempotency.model import RETENTION
from regulars.kit.clock import monotonic
from regulars.kit.db import Tx

# Also more than the time between the moment an answer counts as and its commit.
FIRST_STRETCH = timedelta(minutes=1)
# An hour at 1,000 answers a second, the most that one key may write, is read in about 16 seconds.
STRETCH_MAX = timedelta(hours=1)
STRETCH_FACTOR = 4
QUICK_S = 0.1
SLOW_S = 0.5
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
    """Blank every answer of the last 24 hours in which one of the needles stands; stop after about `seconds_max`.

    Only answers after `since` and not after `until` are looked at. Gives the moment up to which answers are still
    unread, to go on from as `until`, or None when all are read. Without `until` the newest stretch is read in any
    case, with all that was committed up to now.
    """
    oldest = tx.now - RETENTION if since is None else max(since, tx.now - RETENTION)
    newest, stretch = until, FIRST_STRETCH
    started = monotonic()
    while True:
        after = max(oldest, (newest or tx.now) - stretch)
        began = monotonic()
        for first in range(0, len(needles), NEEDLES_PER_STATEMENT_MAX):
            some = needles[first : first + NEEDLES_PER_STATEMENT_MAX]
            await queries.blank_bodies(tx, organization_id, some, after=after, until=newest)
        ended = monotonic()
        if after == oldest:
            return None
        if ended - started >= seconds_max:
            return after
        newest, stretch = after, _next_stretch(stretch, took_s=ended - began)


def _next_stretch(stretch: timedelta, *, took_s: float) -> timedelta:
    if took_s < QUICK_S:
        return min(stretch * STRETCH_FACTOR, STRETCH_MAX)
    return max(stretch / STRETCH_FACTOR, FIRST_STRETCH) if took_s > SLOW_S else stretch
