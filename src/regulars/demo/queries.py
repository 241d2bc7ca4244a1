"""The SQL of the demo on tables of other modules."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from regulars.kit.db import Tx


async def has_data(tx: Tx, organization_id: UUID) -> bool:
    return await tx.fetch(
        "SELECT EXISTS (SELECT FROM stores WHERE organization_id = %(organization_id)s)"
        " OR EXISTS (SELECT FROM profiles WHERE organization_id = %(organization_id)s)"
        " OR EXISTS (SELECT FROM sales_events WHERE organization_id = %(organization_id)s)",
        {"organization_id": organization_id},
    ) == [(True,)]


async def has_sales(tx: Tx, organization_id: UUID) -> bool:
    rows = await tx.fetch("SELECT EXISTS (SELECT FROM sales_events WHERE organization_id = %s)", (organization_id,))
    return rows == [(True,)]


async def find_recent_sales(tx: Tx, organization_id: UUID, *, since: datetime, limit: int) -> list[UUID]:
    """The recent sales with a customer, newest first."""
    return await tx.fetch_column(
        "SELECT id FROM sales_events WHERE organization_id = %s AND occurred_at >= %s AND profile_id IS NOT NULL"
        " ORDER BY occurred_at DESC, id DESC LIMIT %s",
        (organization_id, since, limit),
    )


async def has_due_runs_or_texts(tx: Tx, organization_id: UUID) -> bool:
    """Whether a journey run or a text is due, or a text is being sent."""
    return await tx.fetch(
        "SELECT EXISTS (SELECT FROM journey_runs WHERE organization_id = %(organization_id)s AND due_at <= %(now)s)"
        " OR EXISTS (SELECT FROM texts WHERE organization_id = %(organization_id)s AND due_at <= %(now)s)"
        " OR EXISTS (SELECT FROM texts WHERE organization_id = %(organization_id)s AND state = 'sending')",
        {"organization_id": organization_id, "now": tx.now},
    ) == [(True,)]


async def find_profiles_without_sales(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[UUID]:
    return await tx.fetch_column(
        "SELECT p.id FROM profiles p WHERE p.organization_id = %s AND p.id = ANY(%s) AND NOT EXISTS ("
        "SELECT FROM sales_events e WHERE e.organization_id = p.organization_id AND e.profile_id = p.id)",
        (organization_id, list(ids)),
    )


async def find_texted_profiles(tx: Tx, organization_id: UUID, countries: Sequence[str]) -> list[UUID]:
    """Customers of these countries with a number that may be texted."""
    return await tx.fetch_column(
        "SELECT id FROM profiles WHERE organization_id = %(organization_id)s"
        " AND attributes ->> 'country' = ANY (%(countries)s::text[]) AND EXISTS ("
        "SELECT FROM subscriptions s WHERE s.organization_id = %(organization_id)s AND s.profile_id = profiles.id"
        " AND s.status = 'SUBSCRIBED') ORDER BY id",
        {"organization_id": organization_id, "countries": list(countries)},
    )


async def find_open_recipients(tx: Tx, organization_id: UUID) -> list[tuple[UUID, UUID]]:
    """The campaign and profile of recipients whose outcome may still change."""
    rows = await tx.fetch(
        "SELECT campaign_id, profile_id FROM campaign_recipients"
        " WHERE organization_id = %s AND outcome IN ('queued', 'sent') ORDER BY campaign_id, profile_id",
        (organization_id,),
    )
    return [(row[0], row[1]) for row in rows]


async def find_texted_and_held_out(tx: Tx, organization_id: UUID, campaign_id: UUID) -> dict[bool, list[UUID]]:
    """The recipients of a campaign: under True those who get its text, under False those held out. Arm 0 is held out,
    and arms from 1 are variants of the text; customers in no arm have -1."""
    rows = await tx.fetch(
        "SELECT profile_id, arm > 0 FROM campaign_recipients"
        " WHERE organization_id = %s AND campaign_id = %s AND arm >= 0 ORDER BY profile_id",
        (organization_id, campaign_id),
    )
    return {is_texted: [row[0] for row in rows if row[1] is is_texted] for is_texted in (True, False)}


async def find_recipients_with_text(tx: Tx, organization_id: UUID, *, since: datetime, limit: int) -> list[UUID]:
    """Customers who became recipients of a campaign after `since`, and got its text."""
    return await tx.fetch_column(
        "SELECT DISTINCT profile_id FROM campaign_recipients"
        " WHERE organization_id = %s AND outcome IN ('sent', 'delivered') AND created_at > %s"
        " ORDER BY profile_id LIMIT %s",
        (organization_id, since, limit),
    )
