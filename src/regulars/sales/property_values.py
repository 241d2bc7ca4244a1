"""Count the values of product properties on the lines of stored tickets, for the product catalog."""

from uuid import UUID

from regulars.catalog.counts.counting import ValueSource
from regulars.catalog.counts.model import ValueCount
from regulars.kit.db import Tx


class PropertyValues(ValueSource):
    table = "sales_events"

    async def count_values(
        self, tx: Tx, organization_id: UUID, key: str | None, *, after: UUID, until: UUID
    ) -> list[ValueCount]:
        """Count the values on sales with ids in a range; numbers as they were written, such as `1.0`."""
        rows = await tx.fetch(
            """
            SELECT property.key, property.value, count(*)
            FROM (
                SELECT line_items FROM sales_events
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
            {"organization_id": organization_id, "key": key, "after": after, "until": until},
        )
        return [ValueCount(*row) for row in rows]
