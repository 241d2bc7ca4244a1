"""The SQL for running campaigns: campaigns that are due, their fixed (frozen) audience, and the tokens of their rate
limit.

Totals with an arm from 0 count recipients, including the holdout; arm -1 (`NO_ARM`) counts all other customers of the
segments.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Blobs
from regulars.kit.columns import fill, names_of
from regulars.kit.db import Tx


class DueCampaign(NamedTuple):
    """The columns of `campaigns` that the worker acts on."""

    id: UUID
    state: str
    definition: str
    starts_at: datetime | None
    not_after: datetime
    frozen_at: datetime | None
    confirmed_recipients: int | None
    confirmed_cost: str | None
    # The tokens of the rate limit at the time `tokens_at`, and how many texts were queued at that time.
    tokens: float
    tokens_at: datetime | None
    tokens_queued: int
    attempts: int
    ended_at: datetime | None


_SELECT: Final = fill(
    "SELECT {columns} FROM campaigns WHERE organization_id = %s AND ",
    columns=names_of(DueCampaign)
    .replace("definition", "definition::text")
    .replace("confirmed_cost", "confirmed_cost::text"),
)
_TAKE: Final = _SELECT + "{due} <= %s ORDER BY {due}, id LIMIT %s FOR UPDATE SKIP LOCKED"


async def claim_starting(tx: Tx, organization_id: UUID, *, limit: int) -> list[DueCampaign]:
    """Lock and return the campaigns that start now, so that the worker fixes their audience."""
    return await tx.fetch_all(DueCampaign, fill(_TAKE, due="freeze_at"), (organization_id, tx.now, limit))


async def begin_freezing(tx: Tx, organization_id: UUID, campaign_id: UUID, *, owner: UUID, until: datetime) -> None:
    await tx.execute(
        """
        UPDATE campaigns SET state = 'preparing', owner = %s, freeze_at = %s
        WHERE organization_id = %s AND id = %s
        """,
        (owner, until, organization_id, campaign_id),
    )


async def lock_freezing(tx: Tx, organization_id: UUID, campaign_id: UUID, *, owner: UUID) -> DueCampaign | None:
    """Lock a campaign whose audience is being fixed; None if it was stopped or another worker claimed it meanwhile."""
    return await tx.fetch_first(
        DueCampaign,
        _SELECT + "id = %s AND owner = %s AND state = 'preparing' AND frozen_at IS NULL FOR UPDATE",
        (organization_id, campaign_id, owner),
    )


async def retry_freezing(tx: Tx, organization_id: UUID, campaign_id: UUID, *, freeze_at: datetime, reason: str) -> None:
    await tx.execute(
        """
        UPDATE campaigns SET owner = NULL, freeze_at = %s, reason = %s
        WHERE organization_id = %s AND id = %s
        """,
        (freeze_at, reason, organization_id, campaign_id),
    )


async def postpone_freezing(
    tx: Tx, organization_id: UUID, campaign_id: UUID, *, starts_at: datetime, freeze_at: datetime
) -> None:
    """Store when the first texts leave, by the time zones of the audience, and when the audience is counted again."""
    await tx.execute(
        """
        UPDATE campaigns
        SET state = 'scheduled', owner = NULL, reason = NULL, starts_at = %s, freeze_at = %s
        WHERE organization_id = %s AND id = %s
        """,
        (starts_at, freeze_at, organization_id, campaign_id),
    )


async def store_audience(
    tx: Tx,
    organization_id: UUID,
    campaign_id: UUID,
    pieces: Sequence[bytes],
    *,
    frozen_at: datetime,
    starts_at: datetime | None,
) -> None:
    await tx.execute(
        """
        INSERT INTO campaign_audiences (organization_id, campaign_id, piece, profile_ids)
        SELECT %(organization_id)s, %(campaign_id)s, it.piece, it.profile_ids
        FROM unnest(%(pieces)s::bytea[]) WITH ORDINALITY AS it (profile_ids, piece)
        """,
        {"organization_id": organization_id, "campaign_id": campaign_id, "pieces": Blobs(pieces)},
    )
    await tx.execute(
        """
        UPDATE campaigns
        SET frozen_at = %(frozen_at)s, starts_at = %(starts_at)s, owner = NULL, freeze_at = NULL, reason = NULL,
            due_at = %(now)s
        WHERE organization_id = %(organization_id)s AND id = %(campaign_id)s
        """,
        {
            "organization_id": organization_id,
            "campaign_id": campaign_id,
            "frozen_at": frozen_at,
            "starts_at": starts_at,
            "now": tx.now,
        },
    )


async def pause_with_reason(
    tx: Tx, organization_id: UUID, campaign: DueCampaign, *, resumes_to: str, reason: str, question: str | None = None
) -> None:
    """Pause a campaign with a reason, until a user decides."""
    await tx.execute(
        """
        UPDATE campaigns
        SET state = 'paused', resumes_to = %(resumes_to)s, reason = %(reason)s, question = %(question)s::json,
            owner = NULL, freeze_at = NULL, due_at = not_after, attempts = 0, updated_at = %(now)s, updated_by = NULL
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {
            "organization_id": organization_id,
            "id": campaign.id,
            "resumes_to": resumes_to,
            "reason": reason,
            "question": question,
            "now": tx.now,
        },
    )


async def take_due(tx: Tx, organization_id: UUID, *, limit: int) -> list[DueCampaign]:
    return await tx.fetch_all(DueCampaign, fill(_TAKE, due="due_at"), (organization_id, tx.now, limit))


async def set_due(
    tx: Tx, organization_id: UUID, campaign_id: UUID, due_at: datetime | None, *, attempts: int = 0
) -> None:
    await tx.execute(
        "UPDATE campaigns SET due_at = %s, attempts = %s WHERE organization_id = %s AND id = %s",
        (due_at, attempts, organization_id, campaign_id),
    )


async def set_tokens(
    tx: Tx, organization_id: UUID, campaign_id: UUID, tokens: float, *, queued: int, at: datetime
) -> None:
    await tx.execute(
        """
        UPDATE campaigns SET tokens = %s, tokens_queued = %s, tokens_at = %s WHERE organization_id = %s AND id = %s
        """,
        (tokens, queued, at, organization_id, campaign_id),
    )


async def begin_sending(tx: Tx, organization_id: UUID, campaign_id: UUID) -> None:
    """Change the state to `sending`, after all recipients are stored."""
    await tx.execute(
        """
        UPDATE campaigns
        SET state = 'sending', due_at = %(now)s, updated_at = %(now)s, recipients = (
            SELECT coalesce(sum(recipients), 0)::integer FROM campaign_totals
            WHERE organization_id = %(organization_id)s AND campaign_id = %(campaign_id)s AND arm >= 0
        )
        WHERE organization_id = %(organization_id)s AND id = %(campaign_id)s
        """,
        {"organization_id": organization_id, "campaign_id": campaign_id, "now": tx.now},
    )


async def end_campaign(tx: Tx, organization_id: UUID, campaign_id: UUID) -> None:
    """End a campaign. It remains due until the waiting recipients have their outcome."""
    await tx.execute(
        """
        UPDATE campaigns
        SET state = 'ended', resumes_to = NULL, owner = NULL, freeze_at = NULL, ended_at = %(now)s, due_at = %(now)s,
            updated_at = %(now)s, updated_by = NULL
        WHERE organization_id = %(organization_id)s AND id = %(campaign_id)s
        """,
        {"organization_id": organization_id, "campaign_id": campaign_id, "now": tx.now},
    )


async def find_piece(tx: Tx, organization_id: UUID, campaign_id: UUID) -> tuple[int, bytes] | None:
    """The next piece of the audience whose recipients are not stored yet."""
    rows = await tx.fetch(
        """
        SELECT piece, profile_ids FROM campaign_audiences
        WHERE organization_id = %s AND campaign_id = %s
        ORDER BY piece
        LIMIT 1
        FOR UPDATE
        """,
        (organization_id, campaign_id),
    )
    return (rows[0][0], rows[0][1]) if rows else None


async def delete_piece(tx: Tx, organization_id: UUID, campaign_id: UUID, piece: int) -> None:
    await tx.execute(
        "DELETE FROM campaign_audiences WHERE organization_id = %s AND campaign_id = %s AND piece = %s",
        (organization_id, campaign_id, piece),
    )


async def delete_audience(tx: Tx, organization_id: UUID, campaign_id: UUID) -> None:
    await tx.execute(
        "DELETE FROM campaign_audiences WHERE organization_id = %s AND campaign_id = %s", (organization_id, campaign_id)
    )


async def count_queued(tx: Tx, organization_id: UUID, campaign_id: UUID) -> int:
    return await tx.fetch_count(
        """
        SELECT sum(recipients)::bigint FROM campaign_totals
        WHERE organization_id = %s AND campaign_id = %s AND arm >= 0 AND outcome = 'queued'
        """,
        (organization_id, campaign_id),
    )


async def lock_campaigns(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    """Lock the campaigns in the order of their ids, and return their states."""
    return await tx.fetch_map(
        """
        SELECT id, state FROM campaigns
        WHERE organization_id = %s AND id = ANY (%s::uuid[])
        ORDER BY id
        FOR UPDATE
        """,
        (organization_id, list(ids)),
    )


async def wake_unlimited(tx: Tx, organization_id: UUID, ids: Collection[UUID], *, queued_max: int) -> int:
    """Make campaigns without a rate limit due now, if at most `queued_max` of their texts are queued. Campaigns with a
    rate limit become due when it allows more texts."""
    return await tx.execute(
        """
        UPDATE campaigns SET due_at = %(now)s
        WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[]) AND state = 'sending'
          AND tokens_at IS NULL AND due_at > %(now)s AND (
            SELECT coalesce(sum(recipients), 0) FROM campaign_totals
            WHERE organization_id = %(organization_id)s AND campaign_id = campaigns.id AND arm >= 0
              AND outcome = 'queued'
          ) <= %(queued_max)s
        """,
        {"organization_id": organization_id, "ids": list(ids), "now": tx.now, "queued_max": queued_max},
    )
