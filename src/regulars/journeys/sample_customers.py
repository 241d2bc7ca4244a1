"""Finds customers whose recent sale or consent would trigger a journey, for the preview of its text."""

from typing import NamedTuple
from uuid import UUID

from regulars.journeys.model import SALE_TYPES
from regulars.journeys.snapshot import list_last_sales
from regulars.kit.db import Tx

# How many of the latest sales or subscriptions are read, and how many of these rows are candidates.
RECENT_ROWS_MAX = 500
CANDIDATES_MAX = 60


class SampleCustomer(NamedTuple):
    profile_id: UUID
    sale_id: UUID | None


async def find_samples(
    tx: Tx, organization_id: UUID, trigger: str, *, limit: int, profile_id: UUID | None = None
) -> list[SampleCustomer]:
    """Distinct customers, latest first; with `profile_id` only that customer and their latest sale of the type."""
    sale_type = SALE_TYPES.get(trigger)
    if profile_id is not None:
        sales = [] if sale_type is None else await list_last_sales(tx, organization_id, profile_id, sale_type, limit=1)
        return [SampleCustomer(profile_id, sales[0] if sales else None)]
    if sale_type is None:
        subscribers = await _list_last_subscribers(tx, organization_id, limit=CANDIDATES_MAX)
        return [SampleCustomer(customer, None) for customer in dict.fromkeys(subscribers)][:limit]
    sale_by_customer: dict[UUID, UUID] = {}
    for customer, sale_id in await _list_last_buyers(tx, organization_id, sale_type, limit=CANDIDATES_MAX):
        sale_by_customer.setdefault(customer, sale_id)
    return [SampleCustomer(customer, sale_id) for customer, sale_id in sale_by_customer.items()][:limit]


async def _list_last_buyers(tx: Tx, organization_id: UUID, sale_type: str, *, limit: int) -> list[tuple[UUID, UUID]]:
    """Customers and their sales, from the latest sales of the organization."""
    return await tx.fetch(
        """
        SELECT recent.profile_id, recent.id FROM (
            SELECT id, profile_id, type FROM sales_events
            WHERE organization_id = %s
            ORDER BY id DESC
            LIMIT %s
        ) AS recent
        WHERE recent.profile_id IS NOT NULL AND recent.type = %s
        ORDER BY recent.id DESC
        LIMIT %s
        """,
        (organization_id, RECENT_ROWS_MAX, sale_type, limit),
    )


async def _list_last_subscribers(tx: Tx, organization_id: UUID, *, limit: int) -> list[UUID]:
    return await tx.fetch_column(
        """
        SELECT recent.profile_id FROM (
            SELECT profile_id, status, updated_at FROM subscriptions
            WHERE organization_id = %s
            ORDER BY updated_at DESC, id DESC
            LIMIT %s
        ) AS recent
        WHERE recent.profile_id IS NOT NULL AND recent.status = 'SUBSCRIBED'
        ORDER BY recent.updated_at DESC
        LIMIT %s
        """,
        (organization_id, RECENT_ROWS_MAX, limit),
    )
