"""Deletes recipients of campaigns: those of a customer whose data is erased, and all others after 25 months. Totals
remain."""

from collections.abc import Collection
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.campaigns.model import RecipientOutcome
from regulars.campaigns.totals import Differences, TotalKey
from regulars.kit.db import Tx

_UNSENT: Final = frozenset({RecipientOutcome.WAITING, RecipientOutcome.QUEUED})


async def erase_recipients(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    """Delete the recipients of erased customers. Totals count unsent recipients as erased; the others stay counted."""
    differences = Differences()
    for before, has_ended in await _delete_recipients_of(tx, organization_id, profile_ids):
        # Waiting recipients of an ended campaign are already counted as expired or cancelled.
        if before.outcome in _UNSENT and not (has_ended and before.outcome == RecipientOutcome.WAITING):
            differences.move(before, TotalKey(before.campaign_id, before.arm, RecipientOutcome.ERASED.value))
    await differences.write(tx, organization_id)


async def erase_from_audiences(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    """Remove customers from fixed audiences: lists of profile ids, in pieces, whose recipients are not stored yet. If
    another transaction stores recipients at the same time, the last pass of the erasure deletes these recipients."""
    erased = {identifier.bytes for identifier in profile_ids}
    for campaign_id, piece, content in await _lock_audiences_with(tx, organization_id, erased):
        remaining = b"".join(it for it in split_ids(content) if it not in erased)
        await tx.execute(
            """
            UPDATE campaign_audiences SET profile_ids = %s
            WHERE organization_id = %s AND campaign_id = %s AND piece = %s
            """,
            (remaining, organization_id, campaign_id, piece),
        )


def split_ids(content: bytes, *, count: int = 1) -> list[bytes]:
    """Split profile ids of 16 bytes each into single ids, or into pieces of `count` ids."""
    return [content[start : start + 16 * count] for start in range(0, len(content), 16 * count)]


async def _lock_audiences_with(tx: Tx, organization_id: UUID, ids: Collection[bytes]) -> list[tuple[UUID, int, bytes]]:
    return await tx.fetch(
        """
        SELECT campaign_id, piece, profile_ids FROM campaign_audiences
        WHERE organization_id = %(organization_id)s
          AND EXISTS (SELECT 1 FROM unnest(%(ids)s::bytea[]) AS it (id) WHERE position(it.id IN profile_ids) > 0)
        ORDER BY campaign_id, piece
        FOR UPDATE
        """,
        {"organization_id": organization_id, "ids": list(ids)},
    )


async def _delete_recipients_of(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]
) -> list[tuple[TotalKey, bool]]:
    """Delete recipients; return the total that counts each, and whether its campaign has ended. The customers are
    looked up in each campaign of the organization, by the primary key."""
    rows = await tx.fetch(
        """
        WITH locked AS (
            SELECT campaigns.id AS campaign_id, campaigns.ended_at, campaign_recipients.profile_id
            FROM campaigns
            JOIN campaign_recipients ON campaign_recipients.organization_id = %(organization_id)s
                AND campaign_recipients.campaign_id = campaigns.id
                AND campaign_recipients.profile_id = ANY (%(profile_ids)s::uuid[])
            WHERE campaigns.organization_id = %(organization_id)s
            ORDER BY campaigns.id, campaign_recipients.profile_id
            FOR UPDATE OF campaign_recipients
        )
        DELETE FROM campaign_recipients USING locked
        WHERE campaign_recipients.organization_id = %(organization_id)s
          AND campaign_recipients.campaign_id = locked.campaign_id
          AND campaign_recipients.profile_id = locked.profile_id
        RETURNING campaign_recipients.campaign_id, campaign_recipients.arm, campaign_recipients.outcome,
                  campaign_recipients.reason, campaign_recipients.country, locked.ended_at IS NOT NULL
        """,
        {"organization_id": organization_id, "profile_ids": list(profile_ids)},
    )
    return [(TotalKey(*row[:5]), row[5]) for row in rows]


async def delete_old_recipients(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    return await tx.execute(
        """
        DELETE FROM campaign_recipients
        WHERE organization_id = %(organization_id)s AND (profile_id, campaign_id) IN (
            SELECT profile_id, campaign_id FROM campaign_recipients
            WHERE organization_id = %(organization_id)s AND created_at < %(before)s
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        )
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )
