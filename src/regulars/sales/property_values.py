"""Count the values of product properties on the lines of stored tickets, and the products, for the product catalog."""

from datetime import date
from uuid import UUID

from regulars.catalog.counts.counting import GrowingSource
from regulars.catalog.counts.model import BUYERS_MAX, ValueCount
from regulars.catalog.counts.products import ProductSales, first_stored_day
from regulars.kit.db import Tx
from regulars.kit.json import INTEGER_MAX
from regulars.sales.totals.progress import find_time_zone


class PropertyValues(GrowingSource):
    table = "sales_events"

    async def count_values(
        self, tx: Tx, organization_id: UUID, key: str | None, *, after: UUID, until: UUID
    ) -> list[ValueCount]:
        """Count the values on sales with ids in a range; numbers as they were written, such as `1.0`."""
        rows = await tx.fetch(
            """
            SELECT property.key, property.value, count(*),
                   (array_agg(DISTINCT right(sale.profile_id::text, 12)) FILTER (WHERE sale.profile_id IS NOT NULL))
                   [:%(buyers_max)s]
            FROM (
                SELECT line_items, profile_id FROM sales_events
                WHERE organization_id = %(organization_id)s AND id > %(after)s AND id <= %(until)s
            ) AS sale
            CROSS JOIN LATERAL json_array_elements(sale.line_items) AS line (item)
            CROSS JOIN LATERAL json_each_text(
                CASE WHEN json_typeof(line.item -> 'product' -> 'properties') = 'object'
                    THEN line.item -> 'product' -> 'properties' END
            ) AS property (key, value)
            WHERE property.value IS NOT NULL AND (%(key)s::text IS NULL OR property.key = %(key)s)
            GROUP BY 1, 2
            """,
            {
                "organization_id": organization_id,
                "key": key,
                "after": after,
                "until": until,
                "buyers_max": BUYERS_MAX,
            },
        )
        return [ValueCount(key, value, times, tuple(buyers or ())) for key, value, times, buyers in rows]

    async def list_products(
        self, tx: Tx, organization_id: UUID, *, after: UUID, until: UUID, today: date
    ) -> list[ProductSales]:
        """Add up the products on sales with ids in a range. A line with a unit of measure (kg, m) counts as one
        unit."""
        return await tx.fetch_all(
            ProductSales,
            """
            SELECT code, (array_agg(name ORDER BY at DESC) FILTER (WHERE name <> ''))[1], currency,
                   CASE WHEN at >= %(since)s::date THEN at END AS day, greatest(max(at), DATE '1970-01-01'),
                   coalesce(sum(CASE WHEN unit IS NULL THEN quantity ELSE 1 END) FILTER (WHERE is_sold), 0)::float8,
                   min(cents) FILTER (WHERE is_sold)::bigint, max(cents) FILTER (WHERE is_sold)::bigint
            FROM (
                SELECT item -> 'product' ->> 'external_id' AS code, item -> 'product' ->> 'name' AS name, currency,
                       (occurred_at AT TIME ZONE %(time_zone)s)::date AS at, item ->> 'unit' AS unit, quantity,
                       type = 'PURCHASE' AND quantity > 0 AS is_sold,
                       coalesce((item ->> 'unit_price_cents')::numeric,
                                greatest(-%(cents_max)s::numeric, least(%(cents_max)s, round(
                                    (item ->> 'total_price_cents')::numeric / nullif(quantity, 0))))) AS cents
                FROM sales_events
                CROSS JOIN LATERAL json_array_elements(line_items) AS line (item)
                CROSS JOIN LATERAL (SELECT (item ->> 'quantity')::numeric AS quantity) AS sold
                WHERE organization_id = %(organization_id)s AND id > %(after)s AND id <= %(until)s
            ) AS line
            WHERE code IS NOT NULL
            GROUP BY code, currency, day
            ORDER BY code, day NULLS FIRST
            """,
            {
                "organization_id": organization_id,
                "after": after,
                "until": until,
                "since": first_stored_day(today),
                "cents_max": INTEGER_MAX,
                "time_zone": await find_time_zone(tx, organization_id),
            },
        )
