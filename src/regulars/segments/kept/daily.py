"""Count every segment once a day, so that its sizes have no gaps when nobody looks."""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.kit.db import Tx
from regulars.segments.analysis.ask import Analysis
from regulars.segments.analysis.model import AnalysisAway, Asked, Figures, NotReady
from regulars.segments.kept import queries
from regulars.segments.kept.asked import asked_of
from regulars.segments.kept.manage import load_segment
from regulars.segments.kept.resolve import resolve
from regulars.segments.kept.sizes import keep_size
from regulars.work.claims import ClaimQueue
from regulars.work.queue import Due

# In the organization's zone, when shops are closed and the day before is complete.
COUNTED_AT: Final = time(3)
TRY_AGAIN: Final = timedelta(minutes=10)
DEADLINE_S: Final = 20.0


class Claimed(NamedTuple):
    segment_id: UUID
    version: int
    asked: Asked


class SizeQueue(ClaimQueue[Claimed, Figures | None]):
    name = "segment_sizes"
    due = Due(table="segments")
    look_every_s = 30.0
    bite_rows = 4
    at_once_max = 4

    def __init__(self, analysis: Analysis) -> None:
        super().__init__()
        self._analysis = analysis

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, owner: UUID, until: datetime
    ) -> Sequence[Claimed]:
        claimed = []
        for segment_id in await queries.claim_due_segments(tx, organization_id, limit=limit, owner=owner, until=until):
            segment = await load_segment(tx, organization_id, segment_id)
            resolved = await resolve(tx, organization_id, segment.definition.match)
            claimed.append(Claimed(segment_id, segment.row.version, asked_of(resolved)))
        return claimed

    async def act(self, organization_id: UUID, claim: Claimed) -> Figures | None:
        """None: it cannot be counted now, and is tried again later."""
        if not await self._analysis.answers():
            return None
        try:
            return await self._analysis.figures(organization_id, claim.asked, deadline_s=DEADLINE_S)
        except (NotReady, AnalysisAway):
            return None

    async def settle(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[Claimed, Figures | None]]) -> None:
        zone = ZoneInfo(await queries.find_zone(tx, organization_id))
        for claim, figures in done:
            due_at = tx.now + TRY_AGAIN
            if figures is not None:
                due_at = next_count(tx.now, zone)
                await keep_size(
                    tx,
                    organization_id,
                    claim.segment_id,
                    version=claim.version,
                    total=figures.total,
                    may_be_texted=figures.split.may_be_texted,
                )
            await queries.settle_segment(
                tx, organization_id, claim.segment_id, version=claim.version, owner=self.owner, due_at=due_at
            )


def next_count(now: datetime, zone: ZoneInfo) -> datetime:
    """The next night, in the organization's zone."""
    local = now.astimezone(zone)
    day = local.date() if local.time() < COUNTED_AT else local.date() + timedelta(days=1)
    return datetime.combine(day, COUNTED_AT, zone)
