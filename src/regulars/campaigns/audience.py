"""Translates the audience of a campaign's definition into a query for the analysis process, which counts segments."""

from uuid import UUID

from regulars.campaigns.definition import Definition
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, SEGMENT
from regulars.segments.analysis.protocol import SegmentQuery
from regulars.segments.audience import resolve_audience


async def resolve_definition(tx: Tx, organization_id: UUID, definition: Definition) -> SegmentQuery:
    """Raises `AudienceRefused` if a segment was deleted or has a fault."""
    return await resolve_audience(
        tx,
        organization_id,
        # The check of the definition reports malformed ids, which are omitted here.
        include=SEGMENT.decode_all(definition.include),
        exclude=SEGMENT.decode_all(definition.exclude),
        exclude_received=CAMPAIGN.decode_all(definition.exclude_received),
    )
