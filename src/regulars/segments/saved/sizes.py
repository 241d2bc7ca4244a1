"""Stores the size of each segment per day, after each count; the worker counts all segments every night."""

from collections.abc import Collection, Sequence
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.columns.client import AnalysisQueue
from regulars.columns.protocol import AnalysisUnavailable, NotReady, SegmentCounts, SegmentQuery
from regulars.kit.db import Tx
from regulars.segments.saved import queries
from regulars.segments.saved.manage import load_segment
from regulars.segments.saved.model import SizeRow
from regulars.segments.saved.resolve import query_of, resolve
from regulars.work.claims import CLAIM_FOR
from regulars.work.outbox import behind_since
from regulars.work.queue import Due, WaitLimit

DAYS_SHOWN: Final = 90
RETENTION_DAYS: Final = 400


async def store_size(tx: Tx, organization_id: UUID, segment_id: UUID, counts: SegmentCounts, *, version: int) -> None:
    """Store the counts as today's size. It is dropped if the segment was deleted or has a newer version."""
    day = await queries.find_today(tx, organization_id)
    row = SizeRow(day, version, counts.total, counts.split.may_be_texted, tx.now)
    # Lock order: the version before the segment, as in a deletion, so that the two cannot deadlock.
    await queries.update_version_total_if_none(tx, organization_id, segment_id, version=version, total=counts.total)
    await queries.upsert_size_if_current(tx, organization_id, segment_id, row)
    await queries.delete_old_sizes(tx, organization_id, segment_id, before=day - timedelta(days=RETENTION_DAYS))


async def list_sizes(tx: Tx, organization_id: UUID, segment_id: UUID) -> list[SizeRow]:
    """The sizes of the last 90 days, oldest first."""
    newest_first = await tx.fetch_all(
        SizeRow,
        """
        SELECT {columns} FROM segment_sizes
        WHERE organization_id = %s AND segment_id = %s
        ORDER BY day DESC
        LIMIT %s
        """,
        (organization_id, segment_id, DAYS_SHOWN),
    )
    return newest_first[::-1]


async def find_last_sizes(tx: Tx, organization_id: UUID, segment_ids: Collection[UUID]) -> dict[UUID, SizeRow]:
    if not segment_ids:
        return {}
    rows = await tx.fetch(
        """
        SELECT it.id, size.day, size.version, size.total, size.may_be_texted, size.counted_at
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT day, version, total, may_be_texted, counted_at FROM segment_sizes
            WHERE organization_id = %(organization_id)s AND segment_id = it.id
            ORDER BY day DESC LIMIT 1
        ) AS size
        """,
        {"organization_id": organization_id, "ids": list(segment_ids)},
    )
    return {segment_id: SizeRow(*size) for segment_id, *size in rows}


# The time of the nightly count in the organization's time zone, when stores are closed.
COUNT_TIME: Final = time(3)
RETRY_AFTER: Final = timedelta(minutes=10)
EARLY_RETRY_AFTER: Final = timedelta(seconds=5)
DEADLINE_S: Final = 20.0


class CountClaim(NamedTuple):
    """A segment that this worker counts."""

    segment_id: UUID
    version: int
    query: SegmentQuery
    # Whether changes from before the segment was saved still have to reach the columnar data; a count would miss them.
    is_early: bool = False


class SizeQueue(AnalysisQueue[CountClaim, SegmentCounts | None]):
    """Claims segments that are due, counts them without a transaction, and stores the sizes."""

    name = "segment_sizes"
    due = Due(
        table="segments",
        waits=(
            WaitLimit(at_most=(CLAIM_FOR,), condition="owner IS NOT NULL", waits_again=True),
            WaitLimit(at_most=(timedelta(0),), condition="owner IS NULL AND due_at <= updated_at"),
            # A retry soon after the segment was saved; later only the time of the night is known.
            WaitLimit(
                at_most=(RETRY_AFTER + timedelta(minutes=1),),
                condition="owner IS NULL AND due_at > updated_at AND due_at - updated_at <= interval '11 minutes'",
            ),
            # The next night: a day has at most 25 hours.
            WaitLimit(at_most=(timedelta(hours=25),)),
        ),
    )
    poll_every_s = 30.0
    batch_rows = 4
    at_once_max = 4

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, lowest: int, owner: UUID, until: datetime
    ) -> Sequence[CountClaim]:
        del lowest  # all claims have the same priority
        claimed = []
        # The time of the oldest recorded event that no listener has handled.
        oldest_waiting = await behind_since(tx, organization_id, at_least=timedelta(0))
        for segment_id in await queries.claim_due_segments(tx, organization_id, limit=limit, owner=owner, until=until):
            segment = await load_segment(tx, organization_id, segment_id)
            resolved = await resolve(tx, organization_id, segment.definition.match, damage=segment.damage)
            # After ten minutes the segment is counted anyway: a listener may fail to handle an event for ever.
            is_early = oldest_waiting is not None and oldest_waiting <= segment.row.updated_at > tx.now - RETRY_AFTER
            claimed.append(CountClaim(segment_id, segment.row.version, query_of(resolved), is_early))
        return claimed

    async def act(self, organization_id: UUID, claim: CountClaim) -> SegmentCounts | None:
        """Count the segment; None if it cannot be counted now, and is retried later."""
        if claim.is_early or not await self._analysis.is_listening():
            return None
        try:
            return await self._analysis.count_segment(organization_id, claim.query, deadline_s=DEADLINE_S)
        except (NotReady, AnalysisUnavailable):
            return None

    async def complete(
        self, tx: Tx, organization_id: UUID, done: Sequence[tuple[CountClaim, SegmentCounts | None]]
    ) -> None:
        zone = await queries.load_zone(tx, organization_id)
        for claim, figures in done:
            due_at = tx.now + (EARLY_RETRY_AFTER if claim.is_early else RETRY_AFTER)
            if figures is not None:
                due_at = next_count(tx.now, zone)
                await store_size(tx, organization_id, claim.segment_id, figures, version=claim.version)
            await queries.complete_count(
                tx, organization_id, claim.segment_id, version=claim.version, owner=self.owner, due_at=due_at
            )


def next_count(now: datetime, zone: ZoneInfo) -> datetime:
    """The next night, in the organization's zone."""
    local = now.astimezone(zone)
    day = local.date() if local.time() < COUNT_TIME else local.date() + timedelta(days=1)
    return datetime.combine(day, COUNT_TIME, zone)
