"""The queue of campaigns on which the worker acts: it stores their recipients, queues their texts, or ends them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from regulars.campaigns.model import STEP_WAIT_MAX, CampaignState
from regulars.campaigns.run import queries
from regulars.campaigns.run.discard import discard_audience
from regulars.campaigns.run.feed import feed
from regulars.campaigns.run.finish import close_waiting_rows, end_campaign
from regulars.campaigns.run.prepare import prepare_piece
from regulars.campaigns.run.queries import DueCampaign
from regulars.kit.db import Tx
from regulars.texts.stops import stop
from regulars.work.queue import Due, RowQueue, Schedule, WaitLimit


class CampaignQueue(RowQueue[DueCampaign]):
    name = "campaigns"
    due = Due(
        table="campaigns",
        waits=(
            WaitLimit(at_most=(STEP_WAIT_MAX,), condition="state IN ('draft', 'preparing', 'sending')"),
            # It ended and its waiting recipients are not closed yet; later it waits a week for the last receipts.
            WaitLimit(
                at_most=(STEP_WAIT_MAX,),
                condition="state IN ('ended', 'cancelled') AND (due_at <= ended_at OR attempts > 0)",
            ),
        ),
    )
    schedule = Schedule(waits_s=(1, 5, 30, 120, 600))
    # One campaign in each transaction, because it changes many rows.
    batch_rows = 1
    passes_at_once = 4

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[DueCampaign]:
        return await queries.take_due(tx, organization_id, limit=limit)

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[DueCampaign]) -> None:
        for campaign in rows:
            match CampaignState(campaign.state):
                case CampaignState.PREPARING:
                    await prepare_piece(tx, organization_id, campaign)
                case CampaignState.SENDING:
                    await feed(tx, organization_id, campaign)
                case CampaignState.DRAFT if campaign.frozen_at is not None:
                    if not await discard_audience(tx, organization_id, campaign.id):
                        await queries.set_due(tx, organization_id, campaign.id, tx.now)
                case CampaignState.PAUSED if tx.now >= campaign.not_after:
                    await end_campaign(tx, organization_id, campaign)
                case CampaignState.ENDED | CampaignState.CANCELLED:
                    await close_waiting_rows(tx, organization_id, campaign)
                case _:
                    await queries.set_due(tx, organization_id, campaign.id, None)

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: DueCampaign, *, attempts: int, due_at: datetime | None
    ) -> None:
        """Try a failed campaign again later; after the last attempt, pause it until a user resumes it. Workers then
        remove its queued texts when they would claim them."""
        if due_at is not None:
            await queries.set_due(tx, organization_id, row.id, due_at, attempts=attempts)
        elif row.state in {CampaignState.PREPARING, CampaignState.SENDING}:
            reason = "A step failed; the log of the worker says why."
            await queries.pause_with_reason(tx, organization_id, row, resumes_to=row.state, reason=reason)
            await stop(tx, organization_id, row.id)
        else:
            await queries.set_due(tx, organization_id, row.id, None)
