"""The SQL of campaigns."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from psycopg.sql import SQL

from regulars.campaigns.model import CampaignRow
from regulars.kit.columns import names_of
from regulars.kit.db import Tx

_COLUMNS: Final = SQL(
    names_of(CampaignRow, "campaigns")
    .replace("campaigns.confirmed_cost", "confirmed_cost::text")
    .replace("campaigns.question", "question::text")
)


async def insert_campaign(tx: Tx, organization_id: UUID, row: CampaignRow, *, definition: str) -> None:
    await tx.execute(
        """
        INSERT INTO campaigns (organization_id, id, name, state, revision, definition, created_at, created_by,
                               updated_at, updated_by)
        VALUES (%(organization_id)s, %(id)s, %(name)s, %(state)s, %(revision)s, %(definition)s::json, %(now)s,
                %(created_by)s, %(now)s, %(created_by)s)
        """,
        {"organization_id": organization_id, "definition": definition, "now": tx.now, **row._asdict()},
    )


_FIND: Final = SQL("SELECT {columns}, definition::text FROM campaigns WHERE organization_id = %s AND id = %s {lock}")


async def find_campaign(
    tx: Tx, organization_id: UUID, campaign_id: UUID, *, is_locked: bool = False
) -> tuple[CampaignRow, str] | None:
    """The row of a campaign, and its definition as JSON."""
    statement = _FIND.format(columns=_COLUMNS, lock=SQL("FOR UPDATE" if is_locked else ""))
    rows = await tx.fetch(statement, (organization_id, campaign_id))
    return (CampaignRow(*rows[0][:-1]), rows[0][-1]) if rows else None


async def lock_campaign(tx: Tx, organization_id: UUID, campaign_id: UUID) -> tuple[CampaignRow, str] | None:
    """Lock and return a campaign. Every transaction that changes rows of a campaign locks the campaign first."""
    return await find_campaign(tx, organization_id, campaign_id, is_locked=True)


async def find_campaigns(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[CampaignRow]:
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM campaigns WHERE organization_id = %s AND id = ANY (%s::uuid[])").format(
            columns=_COLUMNS
        ),
        (organization_id, list(ids)),
    )
    return [CampaignRow(*row) for row in rows]


async def list_campaigns(tx: Tx, organization_id: UUID, *, limit: int) -> list[CampaignRow]:
    """Campaigns, newest first."""
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM campaigns WHERE organization_id = %s ORDER BY id DESC LIMIT %s").format(
            columns=_COLUMNS
        ),
        (organization_id, limit),
    )
    return [CampaignRow(*row) for row in rows]


async def update_definition(tx: Tx, organization_id: UUID, row: CampaignRow, *, definition: str) -> None:
    await tx.execute(
        """
        UPDATE campaigns
        SET name = %(name)s, revision = %(revision)s, definition = %(definition)s::json, updated_at = %(now)s,
            updated_by = %(updated_by)s
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "definition": definition, "now": tx.now, **row._asdict()},
    )


async def update_state(tx: Tx, organization_id: UUID, row: CampaignRow) -> None:
    """Save the state, and set when the worker has to fix the audience (`freeze_at`) and to continue the campaign
    (`due_at`): now, or for a paused campaign at its end time."""
    await tx.execute(
        """
        UPDATE campaigns
        SET state = %(state)s, is_archived = %(is_archived)s, resumes_to = %(resumes_to)s, reason = %(reason)s,
            starts_at = %(starts_at)s, not_after = %(not_after)s, confirmed_recipients = %(confirmed_recipients)s,
            confirmed_cost = %(confirmed_cost)s::json, confirmed_by = %(confirmed_by)s, question = NULL,
            approved_revision = %(approved_revision)s, approved_by = %(approved_by)s,
            ended_at = %(ended_at)s, updated_at = %(now)s, updated_by = %(updated_by)s, attempts = 0, owner = NULL,
            freeze_at = CASE WHEN %(state)s IN ('scheduled', 'preparing') AND frozen_at IS NULL
                             THEN %(starts_at)s::timestamptz END,
            due_at = CASE WHEN %(state)s IN ('cancelled', 'ended')
                            OR (%(state)s IN ('preparing', 'sending') AND frozen_at IS NOT NULL)
                          THEN %(now)s::timestamptz
                          WHEN %(state)s = 'paused' THEN %(not_after)s::timestamptz END
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "now": tx.now, **row._asdict()},
    )
