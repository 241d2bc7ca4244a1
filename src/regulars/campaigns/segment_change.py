"""Finds the scheduled campaigns whose audience a new version of a segment changes."""

from collections.abc import Collection
from uuid import UUID

from regulars.campaigns import queries
from regulars.campaigns.audience import match_of
from regulars.campaigns.definition import read_stored_definition
from regulars.campaigns.manage import describe_uses
from regulars.campaigns.model import CampaignState
from regulars.kit.db import Tx
from regulars.segments.saved.uses import ActiveUser


async def find_scheduled_users(
    tx: Tx, organization_id: UUID, ids: Collection[UUID], segment_ids: frozenset[str]
) -> list[ActiveUser]:
    """The scheduled ones among these campaigns, with their audience."""
    del segment_ids
    uses = await describe_uses(tx, organization_id, ids)
    scheduled = {campaign_id: use for campaign_id, use in uses.items() if use.state == CampaignState.SCHEDULED}
    documents = await queries.find_definitions(tx, organization_id, scheduled)
    return [
        ActiveUser(
            use=scheduled[campaign_id],
            match=match_of(read_stored_definition(document)[0]),
            customers="its audience",
        )
        for campaign_id, document in documents.items()
    ]
