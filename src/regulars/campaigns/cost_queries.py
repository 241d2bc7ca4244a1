"""The SQL of exact costs: stores how far the worker has rendered a campaign's texts and counted their SMS parts."""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.columns import names_of
from regulars.kit.db import Tx


class CostRow(NamedTuple):
    """A count of SMS parts, with its progress."""

    campaign_id: UUID
    revision: int
    # The cursor of the page of customers that is rendered next.
    next_page: str | None
    # How many customers of the audience may be texted, and for how many of them the text is rendered.
    customers: int
    rendered: int
    # The counts of the pages that are rendered, as JSON.
    counts: str | None
    # Why the count does not continue.
    reason: str | None
    requested_at: datetime
    completed_at: datetime | None


_COLUMNS: Final = SQL(names_of(CostRow, "campaign_costs").replace("campaign_costs.counts", "counts::text"))


async def upsert_request(tx: Tx, organization_id: UUID, campaign_id: UUID, *, revision: int) -> None:
    """Request a count. A running count of the same revision continues; otherwise the count starts again."""
    await tx.execute(
        """
        INSERT INTO campaign_costs (organization_id, campaign_id, revision, requested_at, due_at)
        VALUES (%(organization_id)s, %(campaign_id)s, %(revision)s, %(now)s, %(now)s)
        ON CONFLICT (organization_id, campaign_id) DO UPDATE
        SET revision = EXCLUDED.revision, next_page = NULL, customers = 0, rendered = 0, counts = NULL, reason = NULL,
            requested_at = EXCLUDED.requested_at, completed_at = NULL, owner = NULL, due_at = EXCLUDED.due_at
        WHERE campaign_costs.revision <> EXCLUDED.revision OR campaign_costs.due_at IS NULL
        """,
        {"organization_id": organization_id, "campaign_id": campaign_id, "revision": revision, "now": tx.now},
    )


async def find_cost(tx: Tx, organization_id: UUID, campaign_id: UUID) -> tuple[CostRow, str] | None:
    """The cost row of the campaign's current revision, and the definition as JSON."""
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns}, campaigns.definition::text FROM campaign_costs
            JOIN campaigns ON campaigns.organization_id = %(organization_id)s
                AND campaigns.id = campaign_costs.campaign_id AND campaigns.revision = campaign_costs.revision
            WHERE campaign_costs.organization_id = %(organization_id)s
              AND campaign_costs.campaign_id = %(campaign_id)s
            """
        ).format(columns=_COLUMNS),
        {"organization_id": organization_id, "campaign_id": campaign_id},
    )
    return (CostRow(*rows[0][:-1]), rows[0][-1]) if rows else None


async def claim_due(
    tx: Tx, organization_id: UUID, *, limit: int, owner: UUID, until: datetime
) -> list[tuple[CostRow, str]]:
    """Claim due counts for the worker `owner`, with their definitions. A count whose campaign has a newer revision is
    cancelled."""
    rows = await tx.fetch(
        SQL(
            """
            UPDATE campaign_costs
            SET owner = %(owner)s, due_at = CASE WHEN due.definition IS NOT NULL THEN %(until)s::timestamptz END
            FROM (
                SELECT costs.campaign_id, (
                    SELECT definition::text FROM campaigns
                    WHERE organization_id = %(organization_id)s AND id = costs.campaign_id
                      AND revision = costs.revision
                ) AS definition
                FROM campaign_costs AS costs
                WHERE costs.organization_id = %(organization_id)s AND costs.due_at <= %(now)s
                ORDER BY costs.due_at, costs.campaign_id
                LIMIT %(limit)s
                FOR UPDATE SKIP LOCKED
            ) AS due
            WHERE campaign_costs.organization_id = %(organization_id)s
              AND campaign_costs.campaign_id = due.campaign_id
            RETURNING {columns}, due.definition
            """
        ).format(columns=_COLUMNS),
        {"organization_id": organization_id, "now": tx.now, "limit": limit, "owner": owner, "until": until},
    )
    return [(CostRow(*row[:-1]), row[-1]) for row in rows if row[-1] is not None]


async def lock_cost(tx: Tx, organization_id: UUID, claimed: CostRow, *, owner: UUID) -> CostRow | None:
    """Lock the row of a claimed count; None if it was requested again or claimed by another worker meanwhile."""
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns} FROM campaign_costs
            WHERE organization_id = %s AND campaign_id = %s AND owner = %s AND requested_at = %s AND rendered = %s
            FOR UPDATE
            """
        ).format(columns=_COLUMNS),
        (organization_id, claimed.campaign_id, owner, claimed.requested_at, claimed.rendered),
    )
    return CostRow(*rows[0]) if rows else None


async def save_cost(tx: Tx, organization_id: UUID, row: CostRow, *, due_at: datetime | None) -> None:
    await tx.execute(
        """
        UPDATE campaign_costs
        SET next_page = %(next_page)s, customers = %(customers)s, rendered = %(rendered)s, counts = %(counts)s::json,
            reason = %(reason)s, completed_at = %(completed_at)s, owner = NULL, due_at = %(due_at)s
        WHERE organization_id = %(organization_id)s AND campaign_id = %(campaign_id)s
        """,
        {"organization_id": organization_id, "due_at": due_at, **row._asdict()},
    )
