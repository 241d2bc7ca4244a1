"""Counts sales as the worker does, and reads the totals beside a count by hand."""

from datetime import datetime
from uuid import UUID

from regulars.sales.facts import SalesRecorded
from regulars.sales.jobs import count_new_sales
from regulars.sales.totals import progress
from regulars.sales.totals.progress import last_id_at

EVERY_ROW = """
SELECT is_hour, day, hour, currency, purchases, returns, identified, gross_cents, returned_cents, discount_cents,
       tax_cents, unit_millionths, returned_unit_millionths, lines
FROM sales_totals WHERE organization_id = %s ORDER BY 1, 2, 3, 4
"""
COUNTED_BY_HAND = """
SELECT GROUPING(hour) = 0, day, coalesce(hour, 0), currency,
       count(*) FILTER (WHERE type = 'PURCHASE'), count(*) FILTER (WHERE type = 'RETURN'), count(profile_id),
       coalesce(sum(total_amount_cents) FILTER (WHERE type = 'PURCHASE'), 0),
       coalesce(sum(total_amount_cents) FILTER (WHERE type = 'RETURN'), 0),
       coalesce(sum(total_discount_cents) FILTER (WHERE type = 'PURCHASE'), 0), coalesce(sum(total_tax_cents), 0),
       coalesce(sum(units) FILTER (WHERE type = 'PURCHASE'), 0), coalesce(sum(units) FILTER (WHERE type = 'RETURN'), 0),
       coalesce(sum(json_array_length(line_items)) FILTER (WHERE type = 'PURCHASE'), 0)
FROM sales_events
CROSS JOIN LATERAL (
    SELECT sum((line->>'quantity')::numeric) * 1000000 AS units FROM json_array_elements(line_items) AS line
) AS of_lines
CROSS JOIN LATERAL (
    SELECT (occurred_at AT TIME ZONE 'UTC')::date AS day, extract(hour FROM occurred_at AT TIME ZONE 'UTC')::int AS hour
) AS local
WHERE organization_id = %s
GROUP BY GROUPING SETS ((day, currency), (day, currency, hour)) ORDER BY 1, 2, 3, 4
"""


async def count_published(desk):
    """Count the sales of the facts that wait, as the worker does."""
    async with desk.database.transaction() as tx:
        facts = [SalesRecorded(list(map(UUID, map(str, sales)))) for sales in await desk.published_sales()]
        await tx.execute("DELETE FROM outbox WHERE organization_id = %s", (desk.organization_id,))
        await count_new_sales(tx, desk.organization_id, facts)


async def begin_fill(desk, *, fence: datetime):
    async with desk.database.transaction() as tx:
        await progress.insert_fill_if_new(tx, desk.organization_id)
        await progress.restart_fill(tx, desk.organization_id, fence=last_id_at(fence), due_at=tx.now, time_zone="UTC")


async def count_in_own_transaction(desk, *sales: UUID) -> None:
    async with desk.database.transaction() as tx:
        await count_new_sales(tx, desk.organization_id, [SalesRecorded(list(sales))])
