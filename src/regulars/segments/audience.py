"""The audience of a campaign: the customers of some segments, without those of others, all as of one snapshot.

`resolve_audience` reads the definitions in a transaction. `Analysis.count_audience` and `Analysis.freeze` then ask the
analysis process, which needs no transaction.
"""

from collections.abc import Sequence
from uuid import UUID

from regulars.conditions import tree
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, SEGMENT
from regulars.segments.analysis.protocol import SegmentQuery
from regulars.segments.definition import SegmentError
from regulars.segments.saved.resolve import query_of, resolve


class AudienceRefused(SegmentError):
    """A segment of the audience is gone or has a fault; the message names it."""


async def resolve_audience(
    tx: Tx,
    organization_id: UUID,
    *,
    include: Sequence[UUID],
    exclude: Sequence[UUID] = (),
    exclude_received: Sequence[UUID] = (),
) -> SegmentQuery:
    """Customers of any included segment who are in no excluded one and received none of these campaigns.

    A segment with a fault matches no customer (decision 44). Excluded, it would let everyone pass, and included, the
    audience would be empty without a reason. So it is refused here.
    """
    if not include:
        raise AudienceRefused("Choose at least one segment to include.")
    received = (tree.ReceivedCampaign(id=CAMPAIGN.encode(campaign_id)) for campaign_id in exclude_received)
    excluded: tuple[tree.Condition, ...] = (*_conditions(exclude), *received)
    without = (tree.Nothing(of=excluded),) if excluded else ()
    match = tree.All(of=(tree.Any(of=_conditions(include)), *without))
    resolved = await resolve(tx, organization_id, match)
    for segment_id in map(SEGMENT.encode, (*include, *exclude)):
        segment = resolved.context.segments.get(segment_id)
        if segment is None:
            raise AudienceRefused(f"There is no segment {segment_id}.")
        if segment.faults:
            raise AudienceRefused(f"The segment {segment.name} has a fault: {segment.faults[0].message}")
    if resolved.faults:
        raise AudienceRefused(resolved.faults[0].message)
    return query_of(resolved)


def _conditions(segments: Sequence[UUID]) -> tuple[tree.InSegment, ...]:
    return tuple(tree.InSegment(id=SEGMENT.encode(segment_id)) for segment_id in segments)
