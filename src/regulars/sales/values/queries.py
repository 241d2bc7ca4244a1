"""The statements that read values of product properties."""

from uuid import UUID

from regulars.kit.db import Tx


async def count_sales(tx: Tx, organization_id: UUID) -> int:
    [(count,)] = await tx.fetch("SELECT count(*) FROM sales_events WHERE organization_id = %s", (organization_id,))
    return int(count)


async def find_end_of_stretch(tx: Tx, organization_id: UUID, *, after: UUID, rows_max: int) -> tuple[int, UUID | None]:
    """How many of the sales that follow there are, up to so many, and the last of them."""
    [(count, last)] = await tx.fetch(
        """
        SELECT count(*), (array_agg(id ORDER BY id DESC))[1] FROM (
            SELECT id FROM sales_events WHERE organization_id = %s AND id > %s ORDER BY id LIMIT %s
        ) AS stretch
        """,
        (organization_id, after, rows_max),
    )
    return count, last


async def count_property_values(
    tx: Tx, organization_id: UUID, key: str | None, *, after: UUID, until: UUID
) -> list[tuple[str, str, int]]:
    """Every distinct value of a property, or of all, on the lines of this stretch, with how often it stands there.

    A number is read as it was spelled.
    """
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
    return [(row[0], row[1], row[2]) for row in rows]
