"""Creates and starts the campaigns of the demo, with audiences that SQL selects.

The analysis process, which normally selects audiences, may not run while the demo is loaded. So the segments are
simple: customers of some countries who may be texted.
"""

from typing import NamedTuple
from uuid import UUID

from babel import Locale

from regulars.campaigns.definition import Definition
from regulars.campaigns.manage import create_campaign, list_campaigns, schedule
from regulars.campaigns.run.start import start_frozen
from regulars.conditions.tree import All, Consent, Country
from regulars.demo.texts import CAMPAIGN_TEXTS
from regulars.experiments.arms import Variant
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.segments.definition import Definition as SegmentDefinition
from regulars.segments.saved.manage import create_segment

_CAMPAIGNS_READ_MAX = 200


class CampaignPlan(NamedTuple):
    """A campaign to the customers of some countries; `texts` has the key of each variant in `CAMPAIGN_TEXTS`."""

    name: str
    countries: tuple[str, ...]
    texts: tuple[str, ...]
    holdout_percent: int = 0
    texts_per_hour: int | None = None


async def has_campaign(tx: Tx, organization_id: UUID, plan: CampaignPlan) -> bool:
    """Whether an earlier attempt to load the demo has created the campaign."""
    return any(row.name == plan.name for row in await list_campaigns(tx, organization_id, limit=_CAMPAIGNS_READ_MAX))


async def create_draft(tx: Tx, organization_id: UUID, plan: CampaignPlan, *, by: str) -> UUID:
    match = All(of=(Consent(state="may_be_texted"), Country(any_of=plan.countries)))
    territories = Locale("en").territories
    name = f"May be texted: {', '.join(str(territories[code]) for code in plan.countries)}"
    segment = await create_segment(tx, organization_id, SegmentDefinition(name=name, match=match), created_by=by)
    share_percent = 100 // len(plan.texts)
    definition = Definition(
        name=plan.name,
        include=(SEGMENT.encode(segment.row.id),),
        variants=tuple(Variant(text=CAMPAIGN_TEXTS[key], share=share_percent) for key in plan.texts),
        holdout_percent=plan.holdout_percent,
        texts_per_hour=plan.texts_per_hour,
    )
    return (await create_campaign(tx, organization_id, definition, created_by=by)).row.id


async def start_campaign(tx: Tx, organization_id: UUID, plan: CampaignPlan, *, by: str) -> UUID:
    """Start the campaign; one without an audience stays a draft."""
    campaign_id = await create_draft(tx, organization_id, plan, by=by)
    audience = await tx.fetch_column(
        "SELECT id FROM profiles WHERE organization_id = %(organization_id)s"
        " AND attributes ->> 'country' = ANY (%(countries)s::text[]) AND EXISTS ("
        "SELECT FROM subscriptions s WHERE s.organization_id = %(organization_id)s AND s.profile_id = profiles.id"
        " AND s.status = 'SUBSCRIBED' AND s.consented_at <= %(now)s) ORDER BY id",
        {"organization_id": organization_id, "countries": list(plan.countries), "now": tx.now},
    )
    if audience:
        await schedule(tx, organization_id, campaign_id, confirmed_recipients=len(audience), by=by, is_now=True)
        # Store the audience as the recipients.
        await start_frozen(tx, organization_id, campaign_id, audience)
    return campaign_id
