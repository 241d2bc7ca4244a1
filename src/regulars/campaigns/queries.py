"""The SQL of campaigns."""

from collections.abc import Collection
from typing import Any, Final
from uuid import UUID

from regulars.campaigns.model import CampaignRow
from regulars.kit.columns import fill, names_of
from regulars.kit.db import Tx
from regulars.kit.refusals import NotFound

_COLUMNS: Final = (
    names_of(CampaignRow)
    .replace("confirmed_cost", "confirmed_cost::text")
    .replace("approved_cost", "approved_cost::text")
    .replace("approved_segments", "approved_segments::text")
    .replace("question", "question::text")
)


async def insert_campaign(tx: Tx, organization_id: UUID, row: CampaignRow, *, definition: str) -> None:
    await tx.execute(
        """
        INSERT INTO campaigns (organization_id, id, name, state, revision, definition, created_at, created_by,
                               updated_at, updated_by, changed_by)
        VALUES (%(organization_id)s, %(id)s, %(name)s, %(state)s, %(revision)s, %(definition)s::json, %(now)s,
                %(created_by)s, %(now)s, %(created_by)s, %(changed_by)s::text[])
        """,
        {"organization_id": organization_id, "definition": definition, "now": tx.now, **row._asdict()},
    )


_LIST: Final = fill("SELECT {columns} FROM campaigns WHERE organization_id = %s ", columns=_COLUMNS)
_FIND: Final = fill(
    "SELECT {columns}, definition::text FROM campaigns WHERE organization_id = %s AND id = %s ", columns=_COLUMNS
)


async def find_campaign(tx: Tx, organization_id: UUID, campaign_id: UUID) -> tuple[CampaignRow, str]:
    """The row of a campaign, and its definition as JSON."""
    return _read(await tx.fetch(_FIND, (organization_id, campaign_id)))


async def lock_campaign(tx: Tx, organization_id: UUID, campaign_id: UUID) -> tuple[CampaignRow, str]:
    """Lock and return a campaign. Every transaction that changes rows of a campaign locks the campaign first."""
    return _read(await tx.fetch(_FIND + "FOR UPDATE", (organization_id, campaign_id)))


def _read(rows: list[tuple[Any, ...]]) -> tuple[CampaignRow, str]:
    if not rows:
        raise NotFound("There is no campaign with this id.")
    return CampaignRow(*rows[0][:-1]), rows[0][-1]


async def find_campaigns(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[CampaignRow]:
    return await tx.fetch_all(CampaignRow, _LIST + "AND id = ANY (%s::uuid[])", (organization_id, list(ids)))


async def find_definitions(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    """The definitions of campaigns as JSON, by id."""
    return await tx.fetch_map(
        "SELECT id, definition::text FROM campaigns WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(ids)),
    )


async def list_campaigns(tx: Tx, organization_id: UUID, *, limit: int) -> list[CampaignRow]:
    """Campaigns, newest first."""
    return await tx.fetch_all(CampaignRow, _LIST + "ORDER BY id DESC LIMIT %s", (organization_id, limit))


async def list_stoppable(tx: Tx, organization_id: UUID, *, limit: int) -> list[CampaignRow]:
    """Campaigns that are scheduled, under way or paused, newest first."""
    # Literals, so that the planner uses the partial index.
    states = "AND state IN ('scheduled', 'preparing', 'sending', 'paused') "
    return await tx.fetch_all(CampaignRow, _LIST + states + "ORDER BY id DESC LIMIT %s", (organization_id, limit))


async def update_definition(tx: Tx, organization_id: UUID, row: CampaignRow, *, definition: str) -> None:
    await tx.execute(
        """
        UPDATE campaigns
        SET name = %(name)s, revision = %(revision)s, definition = %(definition)s::json, updated_at = %(now)s,
            updated_by = %(updated_by)s, changed_by = %(changed_by)s::text[]
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "definition": definition, "now": tx.now, **row._asdict()},
    )


async def update_approval(tx: Tx, organization_id: UUID, row: CampaignRow) -> None:
    await tx.execute(
        """
        UPDATE campaigns
        SET approved_revision = %(approved_revision)s, approved_by = %(approved_by)s, approved_at = %(approved_at)s,
            approved_recipients = %(approved_recipients)s, approved_cost = %(approved_cost)s::json,
            approved_segments = %(approved_segments)s::json
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, **row._asdict()},
    )


async def update_state(tx: Tx, organization_id: UUID, row: CampaignRow) -> None:
    """Save the state, and set when the worker has to fix the audience (`freeze_at`) and to continue the campaign
    (`due_at`): now, or for a paused campaign at its end time. It removes the audience of a draft. For a local time it
    counts the time zones of the audience first, and then sets `freeze_at` again."""
    await tx.execute(
        """
        UPDATE campaigns
        SET state = %(state)s, is_archived = %(is_archived)s, resumes_to = %(resumes_to)s, reason = %(reason)s,
            starts_at = %(starts_at)s, not_after = %(not_after)s, confirmed_recipients = %(confirmed_recipients)s,
            confirmed_cost = %(confirmed_cost)s::json, confirmed_by = %(confirmed_by)s, question = NULL,
            ended_at = %(ended_at)s, updated_at = %(now)s, updated_by = %(updated_by)s, attempts = 0, owner = NULL,
            freeze_at = CASE WHEN %(state)s NOT IN ('scheduled', 'preparing') OR frozen_at IS NOT NULL THEN NULL
                             WHEN definition #>> '{schedule,start}' = 'local' THEN %(now)s::timestamptz
                             ELSE %(starts_at)s::timestamptz END,
            due_at = CASE WHEN %(state)s IN ('cancelled', 'ended')
                            OR (%(state)s IN ('preparing', 'sending', 'draft') AND frozen_at IS NOT NULL)
                          THEN %(now)s::timestamptz
                          WHEN %(state)s = 'paused' THEN %(not_after)s::timestamptz END
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "now": tx.now, **row._asdict()},
    )
