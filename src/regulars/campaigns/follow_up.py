"""Creates a follow-up of a campaign: a segment of customers who received the campaign and did not buy since, and a
draft campaign for that segment."""

from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from regulars.campaigns.definition import SendNow
from regulars.campaigns.manage import Campaign, create_campaign, load_campaign
from regulars.catalog.model import day_of
from regulars.conditions.tree import All, LastPurchase, Nothing, ReceivedCampaign, When
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, SEGMENT
from regulars.kit.refusals import NotPossible
from regulars.segments.definition import Definition as SegmentDefinition
from regulars.segments.saved.manage import create_segment
from regulars.segments.saved.model import Segment
from regulars.segments.saved.resolve import load_context

_NAME_CHARACTERS_MAX: Final = 90


async def follow_up(tx: Tx, organization_id: UUID, campaign_id: UUID, *, by: str | None) -> tuple[Segment, Campaign]:
    """Create the segment and the draft, which has the texts of the first campaign as a start. Purchases count from the
    day on which the first campaign started."""
    campaign = await load_campaign(tx, organization_id, campaign_id)
    if campaign.row.frozen_at is None:
        raise NotPossible("No customer has received this campaign yet.")
    zone = (await load_context(tx, organization_id, [])).zone
    day = day_of(campaign.row.starts_at or campaign.row.frozen_at, zone)
    name = campaign.definition.name[:_NAME_CHARACTERS_MAX]
    received = ReceivedCampaign(id=CAMPAIGN.encode(campaign_id))
    # "Last bought before" would omit customers who never bought.
    bought_since = LastPurchase(when=When(comparison="after", date=day - timedelta(days=1)))
    segment = await create_segment(
        tx,
        organization_id,
        SegmentDefinition(name=f"{name}: received, did not buy", match=All(of=(received, Nothing(of=(bought_since,))))),
        created_by=by,
    )
    draft = msgspec.structs.replace(
        campaign.definition,
        name=f"{name}: follow-up",
        include=(SEGMENT.encode(segment.row.id),),
        exclude=(),
        exclude_received=(),
        schedule=SendNow(),
        not_after=None,
    )
    return segment, await create_campaign(tx, organization_id, draft, created_by=by)
