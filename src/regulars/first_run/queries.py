"""SQL of the page "First steps": the first ticket of an organization, and whether it has a consent."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx


class FirstTicket(NamedTuple):
    id: UUID
    external_id: str
    created_at: datetime
    currency: str
    total_amount_cents: int
    store: str
    customer: str | None


async def find_first_ticket(tx: Tx, organization_id: UUID) -> FirstTicket | None:
    """The ticket that was received first."""
    rows = await tx.fetch(
        "SELECT e.id, e.external_id, e.created_at, e.currency, e.total_amount_cents, coalesce(s.name, s.external_id),"
        " p.external_id FROM sales_events e"
        " JOIN stores s ON s.organization_id = %(organization_id)s AND s.id = e.store_id"
        " LEFT JOIN profiles p ON p.organization_id = %(organization_id)s AND p.id = e.profile_id"
        " WHERE e.organization_id = %(organization_id)s ORDER BY e.id LIMIT 1",
        {"organization_id": organization_id},
    )
    return FirstTicket(*rows[0]) if rows else None


async def has_consent(tx: Tx, organization_id: UUID) -> bool:
    # ORDER BY makes the planner use the index instead of scanning the table of all organizations.
    rows = await tx.fetch(
        "SELECT id FROM subscriptions WHERE organization_id = %s ORDER BY id LIMIT 1", (organization_id,)
    )
    return bool(rows)
