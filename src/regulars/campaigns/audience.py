"""Translates the audience of a campaign's definition into a query for the analysis process, which counts segments."""

from uuid import UUID

from regulars.campaigns.definition import Definition
from regulars.columns.protocol import SegmentQuery
from regulars.conditions.tree import All
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, SEGMENT
from regulars.segments.audience import match_audience, resolve_audience


async def resolve_definition(tx: Tx, organization_id: UUID, definition: Definition) -> SegmentQuery:
    """Raises `AudienceRefused` if a segment was deleted or has a fault."""
    return await resolve_audience(tx, organization_id, **_ids_of(definition))


def match_of(definition: Definition) -> All:
    """The conditions of the audience's customers."""
    return match_audience(**_ids_of(definition))


def _ids_of(definition: Definition) -> dict[str, list[UUID]]:
    """The ids that the definition names. The check of the definition reports malformed ids, which are omitted here."""
    return {
        "include": list(SEGMENT.decode_all(definition.include)),
        "exclude": list(SEGMENT.decode_all(definition.exclude)),
        "exclude_received": list(CAMPAIGN.decode_all(definition.exclude_received)),
    }
