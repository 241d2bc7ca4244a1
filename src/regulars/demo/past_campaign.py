"""Creates the campaign of weeks ago whose lift is known: its texts, their clicks, and the purchases that followed.

One transaction writes all of it with past times, and gives each text its final state. So a worker that runs beside
never finds one of these texts in its queue, where it would skip them as expired.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from typing import Final
from uuid import UUID

from regulars.campaigns.manage import load_campaign
from regulars.campaigns.model import CampaignState
from regulars.campaigns.run.outcomes import QUEUED_MAX, update_outcomes
from regulars.campaigns.run.queue import CampaignQueue
from regulars.demo.purchases import Buyer, copy_tickets, spread_over_hours
from regulars.demo.start_campaign import CampaignPlan, has_campaign, start_campaign
from regulars.demo.traffic import FAILED_EVERY, UNREACHABLE_CODE
from regulars.kit.db import Database, Tx
from regulars.links.counts import add_counts
from regulars.links.model import ClickClass
from regulars.links.origin_kind import OriginKind
from regulars.sales.model import Sale
from regulars.sales.record import record_sales
from regulars.texts.model import Priority
from regulars.texts.providers.simulator import accept_texts
from regulars.texts.receipts import end_sent_texts
from regulars.texts.send import TextQueue
from regulars.work.outbox import date_facts_now

# Large enough to measure an effect, for which 100 buyers of each group are needed: half of the customers get a text,
# and the purchases of the other half, which is held out, show what customers buy without it. The countries share a
# currency, because attribution computes a result for each. The result is final 30 days after its window of a week.
PAST_CAMPAIGN: Final = CampaignPlan(
    "Loyalty weekend, euro countries", ("FR", "BE", "DE"), ("loyalty",), holdout_percent=50
)
PAST_AGE: Final = timedelta(days=45)
# The share of recipients who buy after the campaign: of those texted (True) and of those held out (False).
BUYER_SHARES: Final = {True: 0.32, False: 0.16}
CLICK_SHARES: Final = {ClickClass.PERSON: 0.11, ClickClass.MACHINE: 0.02}
# How long after the start of the campaign its first recipients buy.
BUYS_AFTER: Final = timedelta(hours=4)
PREFIX: Final = "LOYALTY"
# How much time passes from one step of the campaign to the next, and until a delivery receipt arrives.
_STEP: Final = timedelta(seconds=2)
_STEPS_MAX: Final = 1_000
_RECEIPT_AFTER: Final = timedelta(seconds=1)


async def run_past_campaign(database: Database, organization_id: UUID, tickets: Sequence[Sale], *, by: str) -> None:
    """Create the campaign, unless an earlier attempt has. Copies of these tickets become the purchases of some of its
    customers. It runs before other texts of the demo are queued, which would count against the frequency cap."""
    async with database.transaction() as tx:
        if await has_campaign(tx, organization_id, PAST_CAMPAIGN):
            return
        past = replace(tx, now=tx.now - PAST_AGE)
        campaign_id = await start_campaign(past, organization_id, PAST_CAMPAIGN, by=by)
        await _send_all(past, organization_id, campaign_id)
        await _add_purchases(tx, organization_id, campaign_id, tickets)
        # What waits for the listeners of a fact would not wait for one of weeks ago: it seems to have no listener.
        await date_facts_now(tx, organization_id, before=tx.now - PAST_AGE / 2)


async def _send_all(past: Tx, organization_id: UUID, campaign_id: UUID) -> None:
    """Take the steps of the worker's queues for this campaign until it has ended."""
    campaigns, texts = CampaignQueue(), TextQueue({})
    for step in range(_STEPS_MAX):
        tx = replace(past, now=past.now + step * _STEP)
        await campaigns.act(tx, organization_id, await campaigns.take(tx, organization_id, limit=1))
        await _send_due(tx, organization_id, texts)
        campaign = await load_campaign(tx, organization_id, campaign_id)
        if campaign.row.state in {CampaignState.ENDED, CampaignState.DRAFT}:
            return


async def _send_due(tx: Tx, organization_id: UUID, queue: TextQueue) -> None:
    """Send the due texts with the simulator, and record their delivery receipts: most are delivered, some fail."""
    until = tx.now + queue.claim_for
    claims = await queue.claim(
        tx, organization_id, limit=QUEUED_MAX, lowest=Priority.CAMPAIGN, owner=queue.owner, until=until
    )
    if not claims:
        return
    outcomes = await accept_texts(tx, organization_id, [claim.outgoing for claim in claims])
    await queue.complete(tx, organization_id, list(zip(claims, outcomes, strict=True)))
    received = replace(tx, now=tx.now + _RECEIPT_AFTER)
    codes = {claim.text.id: _failure_code(number) for number, claim in enumerate(claims)}
    await end_sent_texts(received, organization_id, codes)
    texts = [claim.text for claim in claims]
    recipients = {(text.origin_id, text.profile_id) for text in texts if text.profile_id is not None}
    await update_outcomes(received, organization_id, recipients)


def _failure_code(number: int) -> str | None:
    return UNREACHABLE_CODE if number % FAILED_EVERY == FAILED_EVERY - 1 else None


async def _add_purchases(tx: Tx, organization_id: UUID, campaign_id: UUID, tickets: Sequence[Sale]) -> None:
    """Record the purchases and the clicks of the campaign's customers, with today's clock, so that journeys do not
    treat the purchases as new."""
    # Arm 0 is held out, and arms from 1 are variants of the text; customers in no arm have -1.
    rows = await tx.fetch(
        "SELECT it.arm > 0, it.profile_id, p.attributes ->> 'country' FROM campaign_recipients it"
        " JOIN profiles p ON p.organization_id = %(organization_id)s AND p.id = it.profile_id"
        " WHERE it.organization_id = %(organization_id)s AND it.campaign_id = %(campaign_id)s AND it.arm >= 0"
        " ORDER BY it.profile_id",
        {"organization_id": organization_id, "campaign_id": campaign_id},
    )
    arms = {is_texted: [Buyer(*row[1:]) for row in rows if row[0] is is_texted] for is_texted in BUYER_SHARES}
    buyers = chain.from_iterable(arms[it][: int(len(arms[it]) * share)] for it, share in BUYER_SHARES.items())
    copies = copy_tickets(tickets, buyers, prefix=PREFIX, at=tx.now - PAST_AGE + BUYS_AFTER)
    await record_sales(tx, organization_id, spread_over_hours(copies), tolerance=timedelta(0))
    clicks = {kind: int(len(arms[True]) * share) for kind, share in CLICK_SHARES.items()}
    # The step of a campaign's text is the number of its variant.
    await add_counts(tx, organization_id, OriginKind.CAMPAIGN, campaign_id, step="1", counts=clicks)
