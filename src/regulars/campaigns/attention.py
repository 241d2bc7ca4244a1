"""Finds campaigns that need a user's attention: paused campaigns, and campaigns that should be sending but have done
nothing for ten minutes."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.campaigns.model import STEP_WAIT_MAX, CampaignRow, CampaignState
from regulars.campaigns.queries import list_stoppable
from regulars.campaigns.totals import count_outcomes
from regulars.kit.db import Tx
from regulars.work.clock_steps import TOLERANCE

STALLED_AFTER: Final = timedelta(minutes=10)
# Of the campaigns that are under way or paused; others need no attention.
CAMPAIGNS_EXAMINED_MAX: Final = 1_000
# States in which the worker has to take the next step soon.
_RUNNING: Final = frozenset({CampaignState.PREPARING, CampaignState.SENDING})


class CampaignInNeed(NamedTuple):
    """A campaign that needs attention."""

    row: CampaignRow
    # The number of recipients whose text was not sent yet.
    unsent: int
    # When the campaign last did something; None if it is paused.
    stalled_since: datetime | None


class SendingProgress(NamedTuple):
    # When the worker has to continue the campaign, or to fix its audience.
    due_at: datetime | None
    # The number of texts that are queued and due, and when the last of them was queued.
    queued: int
    last_queued_at: datetime | None


async def find_in_need(tx: Tx, organization_id: UUID, *, is_on_hold: bool) -> list[CampaignInNeed]:
    """Campaigns that need attention. While all texts are on hold, no campaign is expected to send."""
    rows = await list_stoppable(tx, organization_id, limit=CAMPAIGNS_EXAMINED_MAX)
    running = [row.id for row in rows if _is_running(row) and not (is_on_hold and row.state == CampaignState.SENDING)]
    progress = await _find_progress(tx, organization_id, running) if running else {}
    since = {row.id: _stalled_since(row, progress.get(row.id), tx.now) for row in rows}
    in_need = [row for row in rows if row.state == CampaignState.PAUSED or since[row.id] is not None]
    outcomes = await count_outcomes(tx, organization_id, [row.id for row in in_need]) if in_need else {}
    return [CampaignInNeed(row, _count_unsent(outcomes.get(row.id, {})), since[row.id]) for row in in_need]


def _is_running(row: CampaignRow) -> bool:
    """Whether the worker has to take the next step soon. It also has to while a start waits, which has a reason, and
    when a user starts the campaign at once."""
    if row.state == CampaignState.SCHEDULED:
        return row.reason is not None or (row.starts_at is not None and row.starts_at <= row.updated_at)
    return row.state in _RUNNING


def _count_unsent(outcomes: Mapping[str, int]) -> int:
    return outcomes.get("waiting", 0) + outcomes.get("queued", 0)


def _stalled_since(row: CampaignRow, progress: SendingProgress | None, now: datetime) -> datetime | None:
    """When the campaign last did something, if that is ten minutes ago or more; else None. The next step of a campaign
    is never far ahead: a time further ahead was stored before the clock of the database was set back."""
    active_at: datetime | None = None
    if progress is not None and progress.due_at is not None and progress.due_at > now + STEP_WAIT_MAX + TOLERANCE:
        return min(row.updated_at, now)
    match row.state:
        case CampaignState.SCHEDULED:
            active_at = row.starts_at
        case CampaignState.PREPARING:
            active_at = row.frozen_at or row.starts_at
        case CampaignState.SENDING if progress is not None:
            # Either the queued texts are not sent, or the worker does not continue the campaign.
            active_at = progress.last_queued_at if progress.queued else progress.due_at
    return active_at if active_at is not None and active_at <= now - STALLED_AFTER else None


async def _find_progress(tx: Tx, organization_id: UUID, ids: list[UUID]) -> dict[UUID, SendingProgress]:
    """The progress of each campaign. A text that waits for sending hours is due in more than ten minutes, and is not
    counted."""
    rows = await tx.fetch(
        """
        SELECT campaigns.id, greatest(campaigns.due_at, campaigns.freeze_at), queued.recipients, queued.last_queued_at
        FROM campaigns
        CROSS JOIN LATERAL (
            SELECT count(*) AS recipients, max(campaign_recipients.fed_at) AS last_queued_at
            FROM campaign_recipients
            JOIN texts ON texts.organization_id = %(organization_id)s AND texts.origin_kind = 'campaign'
                AND texts.origin_id = campaigns.id AND texts.step = campaign_recipients.profile_id::text
            WHERE campaign_recipients.organization_id = %(organization_id)s
              AND campaign_recipients.campaign_id = campaigns.id AND campaign_recipients.outcome = 'queued'
              AND texts.due_at <= %(soon)s
        ) AS queued
        WHERE campaigns.organization_id = %(organization_id)s AND campaigns.id = ANY (%(ids)s::uuid[])
        """,
        {"organization_id": organization_id, "ids": ids, "soon": tx.now + STALLED_AFTER},
    )
    return {row[0]: SendingProgress(*row[1:]) for row in rows}


async def count_questions(tx: Tx, organization_id: UUID, *, limit: int) -> int:
    """Count the campaigns that were paused automatically and wait for a user's decision; stops at `limit`."""
    return await tx.fetch_count(
        """
        SELECT count(*) FROM (
            SELECT FROM campaigns
            WHERE organization_id = %s AND due_at IS NOT NULL AND state = 'paused' AND reason IS NOT NULL
            LIMIT %s
        ) AS found
        """,
        (organization_id, limit),
    )
