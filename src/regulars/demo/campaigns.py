"""Creates the campaigns of today: two that have just finished, one that is sending, and a draft. The real campaign code
sends them. `past_campaign.py` creates the one whose result is known."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.campaigns.manage import load_campaign
from regulars.campaigns.model import CampaignState
from regulars.campaigns.run.outcomes import update_outcomes
from regulars.campaigns.run.queue import CampaignQueue
from regulars.demo.purchases import Buyer, copy_tickets
from regulars.demo.start_campaign import CampaignPlan, create_draft, has_campaign, start_campaign
from regulars.kit.db import Database
from regulars.sales.model import Sale
from regulars.sales.record import record_sales
from regulars.texts.providers.simulator import Simulator
from regulars.texts.send import TextQueue

# How often, and in which interval, `_send` checks whether the campaigns have ended.
CHECKS_MAX: Final = 40
CHECK_EVERY_S: Final = 0.3
# How many batches a queue handles before each check.
_PASSES_MAX: Final = 50
TEXTS_PER_HOUR: Final = 60
# How many recipients of today's campaigns buy.
BUYERS_MAX: Final = 60

# No customer is in two of these campaigns: the frequency cap would skip the second text.
_FINISHED_CAMPAIGNS: Final = (
    CampaignPlan("New collection, France", ("FR",), ("collection", "preview"), holdout_percent=10),
    CampaignPlan("Private sale, Switzerland and Belgium", ("CH", "BE"), ("sale",)),
)
_SENDING_CAMPAIGN: Final = CampaignPlan("Late opening, Germany", ("DE",), ("evening",), texts_per_hour=TEXTS_PER_HOUR)
DRAFT_CAMPAIGN: Final = CampaignPlan("Private sale, United Kingdom", ("GB",), ("sale",), holdout_percent=10)


async def run_campaigns(database: Database, organization_id: UUID, tickets: Sequence[Sale], *, by: str) -> None:
    """Start the campaigns, unless an earlier attempt has; then the worker continues them. Copies of these tickets
    become the purchases of some recipients. `by` is stored as the user who created the campaigns."""
    async with database.transaction() as tx:
        if await has_campaign(tx, organization_id, _SENDING_CAMPAIGN):
            return
        finished_ids = [await start_campaign(tx, organization_id, plan, by=by) for plan in _FINISHED_CAMPAIGNS]
        await start_campaign(tx, organization_id, _SENDING_CAMPAIGN, by=by)
    await _send(database, organization_id, finished_ids)
    await _add_purchases(database, organization_id, tickets)


async def add_draft(database: Database, organization_id: UUID, *, by: str) -> None:
    """Create the draft, unless an earlier attempt has."""
    async with database.transaction() as tx:
        if not await has_campaign(tx, organization_id, DRAFT_CAMPAIGN):
            await create_draft(tx, organization_id, DRAFT_CAMPAIGN, by=by)


async def _add_purchases(database: Database, organization_id: UUID, tickets: Sequence[Sale]) -> None:
    """Record purchases of customers who got a text, so that the attribution pages have credited sales."""
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT p.id, p.attributes ->> 'country' FROM profiles p WHERE p.organization_id = %(organization_id)s"
            " AND p.id IN (SELECT profile_id FROM campaign_recipients WHERE organization_id = %(organization_id)s"
            "   AND outcome IN ('sent', 'delivered') AND created_at > %(since)s)"
            " ORDER BY p.id LIMIT %(limit)s",
            {"organization_id": organization_id, "since": tx.now - timedelta(days=1), "limit": BUYERS_MAX},
        )
        bought = copy_tickets(tickets, (Buyer(*row) for row in rows), prefix="AFTER-TEXT", at=tx.now)
        await record_sales(tx, organization_id, bought, tolerance=timedelta(0))


async def count_texts(database: Database, organization_id: UUID) -> None:
    """Update the outcomes of recipients from the states of their texts; normally the worker does this."""
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT campaign_id, profile_id FROM campaign_recipients"
            " WHERE organization_id = %s AND outcome IN ('queued', 'sent') ORDER BY campaign_id, profile_id",
            (organization_id,),
        )
        if rows:
            await update_outcomes(tx, organization_id, [(row[0], row[1]) for row in rows])


async def _send(database: Database, organization_id: UUID, campaign_ids: Sequence[UUID]) -> None:
    """Run the queues of campaigns and texts until these campaigns have ended. A running worker may send some of the
    texts."""
    queues = (CampaignQueue(), TextQueue({"simulator": Simulator(database)}))
    for _ in range(CHECKS_MAX):
        for queue in queues:
            for _ in range(_PASSES_MAX):
                if not await queue.run_pass(database, organization_id):
                    break
            await queue.finish()
        await count_texts(database, organization_id)
        async with database.reading() as tx:
            states = {(await load_campaign(tx, organization_id, campaign_id)).row.state for campaign_id in campaign_ids}
        if states <= {CampaignState.ENDED, CampaignState.DRAFT}:
            return
        await asyncio.sleep(CHECK_EVERY_S)
