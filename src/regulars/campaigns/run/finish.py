"""Ends and stops campaigns. Totals of recipients without a queued text change at once, their rows in batches."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.campaigns.facts import CampaignEnded
from regulars.campaigns.model import KIND, CampaignState, RecipientOutcome, needed_by
from regulars.campaigns.run import queries, recipient_queries
from regulars.campaigns.run.outcomes import closing_outcome, return_to_waiting, save_outcomes
from regulars.campaigns.run.queries import DueCampaign
from regulars.campaigns.totals import Differences, TotalKey, list_totals
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.segments.saved.uses import register_uses
from regulars.texts.facts import MessagesChanged
from regulars.texts.model import SkipReason
from regulars.texts.stops import stop_campaign
from regulars.work.outbox import record, withdraw_interest

_CLOSED_ROWS_MAX: Final = 5_000
# How long after the end of a campaign its texts may still change, because delivery receipts may arrive days later.
_OUTCOMES_CHANGE_FOR: Final = timedelta(days=7)


async def end_campaign(tx: Tx, organization_id: UUID, campaign: DueCampaign) -> None:
    """End a campaign, because all texts were sent or its end time has passed."""
    await queries.end_campaign(tx, organization_id, campaign.id)
    await close_waiting_totals(tx, organization_id, campaign.id, CampaignState.ENDED)
    await register_uses(tx, organization_id, [], kind=KIND, used_by_id=campaign.id)
    failpoint.hit("campaign.ended", tx.connection.drop_connection)


async def close_waiting_totals(tx: Tx, organization_id: UUID, campaign_id: UUID, state: CampaignState) -> None:
    """Change the totals of waiting recipients to the outcome of an ended campaign, and record the end for listeners in
    other packages. The caller has locked the campaign."""
    await queries.delete_audience(tx, organization_id, campaign_id)
    outcome, reason = closing_outcome(state)
    differences = Differences()
    for row in await list_totals(tx, organization_id, campaign_id):
        if row.outcome == RecipientOutcome.WAITING:
            differences.add(TotalKey(campaign_id, row.arm, row.outcome, row.reason, row.country), -row.recipients)
            differences.add(TotalKey(campaign_id, row.arm, outcome, reason), row.recipients)
    await differences.write(tx, organization_id)
    await record(tx, organization_id, [CampaignEnded(campaign_id)])


async def unqueue_texts(tx: Tx, organization_id: UUID, campaign_id: UUID, state: CampaignState) -> None:
    """Stop the texts of a campaign; after the commit no worker claims them for sending. A pause deletes queued texts,
    so that they can be queued again; a cancellation skips them.

    The caller has locked the text settings and then the campaign. Recipients are locked before their texts, the same
    order as in an erasure. A text that is being sent is counted when its outcome is known.
    """
    queued = await recipient_queries.lock_queued_recipients(tx, organization_id, campaign_id)
    skip_reason = SkipReason.CANCELLED if state is CampaignState.CANCELLED else None
    steps = [str(it.profile_id) for it in queued]
    unqueued = await stop_campaign(tx, organization_id, campaign_id, steps, skip_reason=skip_reason)
    if skip_reason is None:
        await save_outcomes(
            tx,
            organization_id,
            [(it, return_to_waiting(it, state)) for it in queued if str(it.profile_id) in unqueued],
        )
    failpoint.hit("campaign.stopped", tx.connection.drop_connection)


async def close_waiting_rows(tx: Tx, organization_id: UUID, campaign: DueCampaign) -> None:
    """Update the next batch of waiting recipients of an ended campaign. After seven days its texts do not change any
    more, so withdraw the interest in their changes."""
    outcome, reason = closing_outcome(CampaignState(campaign.state))
    closed = await recipient_queries.close_waiting(
        tx, organization_id, campaign.id, outcome=outcome, reason=reason, limit=_CLOSED_ROWS_MAX
    )
    final_at = (campaign.ended_at or tx.now) + _OUTCOMES_CHANGE_FOR
    if not closed and tx.now >= final_at:
        await withdraw_interest(tx, organization_id, MessagesChanged, needed_by=needed_by(campaign.id))
        await queries.set_due(tx, organization_id, campaign.id, None)
    else:
        await queries.set_due(tx, organization_id, campaign.id, tx.now if closed else final_at)
