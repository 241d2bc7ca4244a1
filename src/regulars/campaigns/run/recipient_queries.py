"""The SQL of a campaign's recipients: stores them, takes those whose texts are queued next, and updates outcomes."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Bigints, Ids, Labels, Timestamps
from regulars.kit.columns import Columns
from regulars.kit.db import Tx


class Recipient(NamedTuple):
    """`arm` is the variant's number, or 0 for the holdout. A text may be queued at `open_at`, and was at `fed_at`."""

    campaign_id: UUID
    profile_id: UUID
    arm: int
    outcome: str
    reason: str
    country: str
    parts: int
    open_at: datetime
    fed_at: datetime | None


class NewRecipient(NamedTuple):
    """`block` is shared by some 1,000 recipients whose profile ids follow each other."""

    profile_id: UUID
    block: int
    arm: int
    position: int
    outcome: str
    open_at: datetime


_NEW_RECIPIENTS: Final = Columns(
    profile_id=Ids, block=Bigints, arm=Bigints, position=Bigints, outcome=Labels, open_at=Timestamps
)
_INSERT: Final = _NEW_RECIPIENTS.write(
    """
    INSERT INTO campaign_recipients (organization_id, campaign_id, created_at, {columns})
    SELECT %(organization_id)s, %(campaign_id)s, %(now)s, it.* FROM {rows}
    WHERE EXISTS (SELECT 1 FROM profiles WHERE organization_id = %(organization_id)s AND id = it.profile_id)
    ON CONFLICT (organization_id, campaign_id, profile_id) DO NOTHING
    RETURNING arm, outcome
    """
)


async def insert_recipients(
    tx: Tx, organization_id: UUID, campaign_id: UUID, recipients: Sequence[NewRecipient]
) -> list[tuple[int, str]]:
    """Insert the recipients whose profile exists; return arm and outcome of each. If a profile is erased at the same
    time, the last pass of the erasure deletes the recipient."""
    return await tx.fetch(
        _INSERT,
        {
            "organization_id": organization_id,
            "campaign_id": campaign_id,
            "now": tx.now,
            **_NEW_RECIPIENTS.of(recipients),
        },
    )


async def take_recipients(
    tx: Tx, organization_id: UUID, campaign_id: UUID, *, until: datetime, limit: int
) -> list[Recipient]:
    """Lock and return waiting recipients who are due until then, in random order, except recipients that an erasure has
    locked."""
    return await tx.fetch_all(
        Recipient,
        """
        SELECT {columns} FROM campaign_recipients
        WHERE organization_id = %s AND campaign_id = %s AND outcome = 'waiting' AND open_at <= %s
        ORDER BY open_at, position
        LIMIT %s
        FOR UPDATE SKIP LOCKED
        """,
        (organization_id, campaign_id, until, limit),
    )


async def find_next_send_at(tx: Tx, organization_id: UUID, campaign_id: UUID) -> datetime | None:
    """When the text of the next waiting recipient may be queued; None if no recipient waits."""
    return await tx.fetch_value(
        """
        SELECT open_at FROM campaign_recipients
        WHERE organization_id = %s AND campaign_id = %s AND outcome = 'waiting'
        ORDER BY open_at
        LIMIT 1
        """,
        (organization_id, campaign_id),
    )


async def lock_recipients(tx: Tx, organization_id: UUID, keys: Collection[tuple[UUID, UUID]]) -> list[Recipient]:
    """Lock and return recipients by campaign id and profile id, in the order of these keys."""
    return await tx.fetch_all(
        Recipient,
        """
        SELECT {columns} FROM campaign_recipients
        JOIN unnest(%(campaign_ids)s::uuid[], %(profile_ids)s::uuid[]) AS it (wanted_campaign_id, wanted_profile_id)
            ON it.wanted_campaign_id = campaign_id AND it.wanted_profile_id = profile_id
        WHERE organization_id = %(organization_id)s
        ORDER BY campaign_id, profile_id
        FOR UPDATE OF campaign_recipients
        """,
        {
            "organization_id": organization_id,
            "campaign_ids": [campaign_id for campaign_id, _ in keys],
            "profile_ids": [profile_id for _, profile_id in keys],
        },
    )


async def lock_queued_recipients(tx: Tx, organization_id: UUID, campaign_id: UUID) -> list[Recipient]:
    """Lock and return recipients whose text is queued. Callers lock recipients before texts, as an erasure does."""
    return await tx.fetch_all(
        Recipient,
        """
        SELECT {columns} FROM campaign_recipients
        WHERE organization_id = %s AND campaign_id = %s AND outcome = 'queued'
        ORDER BY profile_id
        FOR UPDATE
        """,
        (organization_id, campaign_id),
    )


_CHANGED_RECIPIENTS: Final = Columns(
    campaign_id=Ids, profile_id=Ids, outcome=Labels, reason=Labels, country=Labels, parts=Bigints, open_at=Timestamps,
    fed_at=Timestamps,
)  # fmt: skip
_UPDATE: Final = _CHANGED_RECIPIENTS.write(
    """
    UPDATE campaign_recipients SET {set}
    FROM {rows}
    WHERE campaign_recipients.organization_id = %(organization_id)s
      AND campaign_recipients.profile_id = it.profile_id AND campaign_recipients.campaign_id = it.campaign_id
    """,
    set=_CHANGED_RECIPIENTS.assign("it", without=("campaign_id", "profile_id")),
)


async def save_recipients(tx: Tx, organization_id: UUID, recipients: Sequence[Recipient]) -> None:
    await tx.execute(_UPDATE, {"organization_id": organization_id, **_CHANGED_RECIPIENTS.of(recipients)})


async def close_waiting(
    tx: Tx, organization_id: UUID, campaign_id: UUID, *, outcome: str, reason: str, limit: int
) -> int:
    """Set the outcome of waiting recipients of an ended campaign; the totals already count this outcome."""
    return await tx.execute(
        """
        UPDATE campaign_recipients SET outcome = %(outcome)s, reason = %(reason)s
        WHERE organization_id = %(organization_id)s AND (profile_id, campaign_id) IN (
            SELECT profile_id, campaign_id FROM campaign_recipients
            WHERE organization_id = %(organization_id)s AND campaign_id = %(campaign_id)s AND outcome = 'waiting'
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        )
        """,
        {
            "organization_id": organization_id,
            "campaign_id": campaign_id,
            "outcome": outcome,
            "reason": reason,
            "limit": limit,
        },
    )
