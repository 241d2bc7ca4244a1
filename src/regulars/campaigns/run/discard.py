"""Removes the audience of a campaign that was paused before any of its texts was dialled, so that it can be changed:
its recipients with their texts, in batches. Until they are removed, the draft cannot be scheduled."""

from typing import Final
from uuid import UUID

from regulars.campaigns.run import queries
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts.stops import delete_texts_of_steps

_RECIPIENTS_MAX: Final = 5_000


async def discard_audience(tx: Tx, organization_id: UUID, campaign_id: UUID) -> bool:
    """Remove the next batch of recipients, and with the last batch everything else; return whether it was the last. The
    caller has locked the campaign."""
    removed = await _delete_recipients(tx, organization_id, campaign_id)
    steps = [str(profile_id) for profile_id in removed]
    await delete_texts_of_steps(tx, organization_id, OriginKind.CAMPAIGN, campaign_id, steps)
    is_last = len(removed) < _RECIPIENTS_MAX
    if is_last:
        await queries.delete_audience(tx, organization_id, campaign_id)
        key = (organization_id, campaign_id)
        await tx.execute("DELETE FROM campaign_totals WHERE organization_id = %s AND campaign_id = %s", key)
        await tx.execute(
            """
            UPDATE campaigns
            SET frozen_at = NULL, recipients = NULL, due_at = NULL, tokens = 0, tokens_at = NULL, tokens_queued = 0
            WHERE organization_id = %s AND id = %s
            """,
            key,
        )
    return is_last


async def _delete_recipients(tx: Tx, organization_id: UUID, campaign_id: UUID) -> list[UUID]:
    return await tx.fetch_column(
        """
        DELETE FROM campaign_recipients
        WHERE organization_id = %(organization_id)s AND campaign_id = %(campaign_id)s AND profile_id = ANY (ARRAY(
            SELECT profile_id FROM campaign_recipients
            WHERE organization_id = %(organization_id)s AND campaign_id = %(campaign_id)s
            ORDER BY profile_id
            LIMIT %(limit)s
            FOR UPDATE
        ))
        RETURNING profile_id
        """,
        {"organization_id": organization_id, "campaign_id": campaign_id, "limit": _RECIPIENTS_MAX},
    )
