"""Builds the query for the audience of a campaign: customers of the included segments who are in no excluded segment.

`resolve_audience` reads the definitions in a transaction. Afterwards, without a transaction, the caller sends the query
to the analysis process, with `Analysis.count_audience`, or with `Analysis.stream_audience` to store the recipients.
"""

from collections.abc import Sequence
from uuid import UUID

from regulars.columns.protocol import SegmentQuery
from regulars.conditions import tree
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, SEGMENT
from regulars.kit.refusals import Refused
from regulars.segments.saved.resolve import query_of, resolve


class AudienceRefused(Refused):
    """A segment of the audience was deleted or has a fault; the message names it."""


async def resolve_audience(
    tx: Tx,
    organization_id: UUID,
    *,
    include: Sequence[UUID],
    exclude: Sequence[UUID] = (),
    exclude_received: Sequence[UUID] = (),
) -> SegmentQuery:
    """Build the query for customers who are in an included segment, are in no excluded segment and received none of
    these campaigns.

    A segment with a fault matches no customer. As an excluded segment it would exclude no customer, and
    as an included segment it would leave the audience empty without a reason. So it is refused here.
    """
    if not include:
        raise AudienceRefused("Choose at least one segment to include.")
    match = match_audience(include=include, exclude=exclude, exclude_received=exclude_received)
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


def match_audience(*, include: Sequence[UUID], exclude: Sequence[UUID], exclude_received: Sequence[UUID]) -> tree.All:
    """The conditions of the customers of an audience."""
    received = (tree.ReceivedCampaign(id=CAMPAIGN.encode(campaign_id)) for campaign_id in exclude_received)
    excluded: tuple[tree.Condition, ...] = (*_membership_conditions(exclude), *received)
    exclusion = (tree.Nothing(of=excluded),) if excluded else ()
    return tree.All(of=(tree.Any(of=_membership_conditions(include)), *exclusion))


def _membership_conditions(segments: Sequence[UUID]) -> tuple[tree.InSegment, ...]:
    return tuple(tree.InSegment(id=SEGMENT.encode(segment_id)) for segment_id in segments)
