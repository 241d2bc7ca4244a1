"""Reads the two groups of a campaign that are compared to measure its effect: customers who were meant to be texted,
and the holdout of customers who were not."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.experiments.arms import HELD_OUT_ARM
from regulars.kit.db import Tx


class Holdout(NamedTuple):
    """The holdout of a campaign; `percent` is 0 without a holdout. The audience is fixed at `frozen_at`, and no text is
    queued after `ended_at`."""

    campaign_id: UUID
    percent: int
    frozen_at: datetime | None
    ended_at: datetime | None


async def find_holdouts(tx: Tx, organization_id: UUID, campaign_ids: Collection[UUID]) -> dict[UUID, Holdout]:
    rows = await tx.fetch(
        """
        SELECT id, coalesce((definition ->> 'holdout_percent')::integer, 0), frozen_at, ended_at FROM campaigns
        WHERE organization_id = %s AND id = ANY (%s::uuid[])
        """,
        (organization_id, list(campaign_ids)),
    )
    return {row[0]: Holdout(*row) for row in rows}


async def find_queueing_times(tx: Tx, organization_id: UUID, campaign_id: UUID) -> tuple[datetime, datetime] | None:
    """When the first and the last text of the campaign were queued; None if no text was queued."""
    [(first, last)] = await tx.fetch(
        """
        SELECT min(fed_at), max(fed_at) FROM campaign_recipients
        WHERE organization_id = %s AND campaign_id = %s
        """,
        (organization_id, campaign_id),
    )
    return None if first is None else (first, last)


async def read_arms(tx: Tx, organization_id: UUID, campaign_id: UUID) -> tuple[bytes, bytes]:
    """The profile ids, 16 bytes each, of all customers who were meant to get a text, whether or not it was sent, and of
    the customers who were held out."""
    rows = await tx.fetch(
        """
        SELECT arm = %(held_out)s AS is_held_out, string_agg(uuid_send(profile_id), ''::bytea)
        FROM campaign_recipients
        WHERE organization_id = %(organization_id)s AND campaign_id = %(campaign_id)s AND arm >= %(held_out)s
        GROUP BY is_held_out
        """,
        {"organization_id": organization_id, "campaign_id": campaign_id, "held_out": HELD_OUT_ARM},
    )
    arms = {row[0]: bytes(row[1]) for row in rows}
    return arms.get(False, b""), arms.get(True, b"")
