"""Translates the audience of a campaign's definition into a query for the analysis process, which counts segments."""

from collections.abc import Sequence
from uuid import UUID

from regulars.campaigns.definition import Definition
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, SEGMENT, IdKind
from regulars.segments.analysis.protocol import SegmentQuery
from regulars.segments.audience import resolve_audience


async def resolve_definition(tx: Tx, organization_id: UUID, definition: Definition) -> SegmentQuery:
    """Raises `AudienceRefused` if a segment was deleted or has a fault."""
    return await resolve_audience(
        tx,
        organization_id,
        include=decode_ids(SEGMENT, definition.include),
        exclude=decode_ids(SEGMENT, definition.exclude),
        exclude_received=decode_ids(CAMPAIGN, definition.exclude_received),
    )


def decode_ids(kind: IdKind, ids: Sequence[str]) -> list[UUID]:
    """Decode the ids and omit invalid ones, which the check of the definition reports."""
    return [identifier for it in ids if (identifier := kind.decode(it)) is not None]
