"""Finds the scheduled campaigns whose audience a new version of a segment changes."""

from collections.abc import Collection
from uuid import UUID

from regulars.campaigns import queries
from regulars.campaigns.audience import match_of
from regulars.campaigns.manage import describe_uses
from regulars.campaigns.model import CampaignState
from regulars.campaigns.stored_definition import read_stored_definition
from regulars.kit.db import Tx
from regulars.segments.saved.uses import ActiveUser


async def find_scheduled_users(
    tx: Tx, organization_id: UUID, ids: Collection[UUID], segment_ids: frozenset[str]
) -> list[ActiveUser]:
    """The scheduled ones among these campaigns, with their audience."""
    del segment_ids
    uses = await describe_uses(tx, organization_id, ids)
    users = []
    for campaign_id, use in uses.items():
        if use.state == CampaignState.SCHEDULED:
            _, document = await queries.find_campaign(tx, organization_id, campaign_id)
            definition, _ = read_stored_definition(document)
            users.append(ActiveUser(use=use, match=match_of(definition), customers="its audience"))
    return users
