"""Lists of recipients: of a campaign by outcome, and of one person."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.campaigns.model import Outcome
from regulars.kit.db import Tx


class RecipientRow(NamedTuple):
    profile_id: UUID
    arm: int
    outcome: str
    reason: str
    open_at: datetime
    fed_at: datetime | None


class RecipientOfPerson(NamedTuple):
    campaign_id: UUID
    name: str
    arm: int
    outcome: str
    reason: str
    created_at: datetime


async def list_recipients(
    tx: Tx, organization_id: UUID, campaign_id: UUID, *, outcome: Outcome, after: UUID, limit: int
) -> list[RecipientRow]:
    """Of one outcome, in the order of their profiles."""
    rows = await tx.fetch(
        """
        SELECT profile_id, arm, outcome, reason, open_at, fed_at FROM campaign_recipients
        WHERE organization_id = %(organization_id)s AND campaign_id = %(campaign_id)s AND outcome = %(outcome)s
          AND profile_id > %(after)s
        ORDER BY profile_id
        LIMIT %(limit)s
        """,
        {
            "organization_id": organization_id,
            "campaign_id": campaign_id,
            "outcome": outcome.value,
            "after": after,
            "limit": limit,
        },
    )
    return [RecipientRow(*row) for row in rows]


async def list_recipients_of_person(
    tx: Tx, organization_id: UUID, profile_id: UUID, *, after: UUID, limit: int
) -> list[RecipientOfPerson]:
    """The campaigns of which a person is a recipient, the oldest first."""
    rows = await tx.fetch(
        """
        SELECT campaign_recipients.campaign_id, campaigns.name, campaign_recipients.arm, campaign_recipients.outcome,
               campaign_recipients.reason, campaign_recipients.created_at
        FROM campaign_recipients
        JOIN campaigns ON campaigns.organization_id = %(organization_id)s
            AND campaigns.id = campaign_recipients.campaign_id
        WHERE campaign_recipients.organization_id = %(organization_id)s
          AND campaign_recipients.profile_id = %(profile_id)s AND campaign_recipients.campaign_id > %(after)s
        ORDER BY campaign_recipients.campaign_id
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "profile_id": profile_id, "after": after, "limit": limit},
    )
    return [RecipientOfPerson(*row) for row in rows]
